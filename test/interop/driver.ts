import type { StreamEvent } from "../../src/core/model/event.ts";
import type { Message } from "../../src/core/model/message.ts";
import type { SendConfiguration, SendOutcome, TaskPushNotificationConfig } from "../../src/core/model/operation.ts";
import type { Task } from "../../src/core/model/task.ts";

/** Headers by which a caller shows who it is; gRPC carries them as metadata. */
export type Credentials = Readonly<Record<string, string>>;

export const TOKEN = "interop";

/** Sent by every client unless told otherwise: servers here show more to the one who bears it. */
export const CREDENTIALS: Credentials = { Authorization: `Bearer ${TOKEN}` };

export interface Sending {
  readonly message: Message;
  readonly configuration?: SendConfiguration;
}

/** The members of a card that all versions have in common. */
interface AnyCard {
  readonly name: string;
  readonly skills: readonly { readonly id: string }[];
  readonly capabilities:
    | { readonly streaming?: boolean | undefined; readonly pushNotifications?: boolean | undefined }
    | undefined;
}

/** What a client understood of a card. */
export function factsOf({ capabilities, name, skills }: AnyCard) {
  return {
    name,
    skills: skills.map(({ id }) => id),
    streaming: capabilities?.streaming ?? false,
    pushNotifications: capabilities?.pushNotifications ?? false,
  };
}

type CardFacts = ReturnType<typeof factsOf>;

/** The code of the error's class, or of that of its cause; undefined for an error of no class that is listed. */
export function codeByClass(
  error: unknown,
  classes: Readonly<Record<string, abstract new (...given: never) => unknown>>,
) {
  const typed = (value: unknown) => Object.entries(classes).find(([, Class]) => value instanceof Class)?.[0];
  const inner = error instanceof Error ? typed(error.cause) : undefined;
  return typed(error) ?? (inner === undefined ? undefined : `${inner} inside another error`);
}

/**
 * A real client, told what to do in the words of the model, whatever its own are. A method the client has not got at all
 * is absent.
 */
export interface Driver {
  /** As the client found it by itself. */
  readonly card: CardFacts;
  /** `binding version` of what is spoken, as the client tells it. */
  readonly speaks: string;
  send(sending: Sending): Promise<SendOutcome>;
  stream(sending: Sending): AsyncIterable<StreamEvent>;
  get(id: string, historyLength?: number): Promise<Task>;
  list?(contextId: string): Promise<readonly Task[]>;
  cancel(id: string): Promise<Task>;
  subscribe(id: string): AsyncIterable<StreamEvent>;
  createPushConfig(taskId: string, config: TaskPushNotificationConfig): Promise<TaskPushNotificationConfig>;
  getPushConfig(taskId: string, id: string): Promise<TaskPushNotificationConfig>;
  listPushConfigs(taskId: string): Promise<readonly TaskPushNotificationConfig[]>;
  deletePushConfig(taskId: string, id: string): Promise<void>;
  extendedCard(): Promise<CardFacts>;
  /** The type of an error this client threw, as one of our codes; its own name or text for a type it has no class for. */
  codeOf(error: unknown): string;
}
