import type { Signal } from "./abort.ts";
import type { Caller } from "./caller.ts";
import type { AgentCard } from "./card.ts";
import type { StreamEvent } from "./event.ts";
import type { Hops } from "./extensions.ts";
import type { JsonObject } from "./json.ts";
import type { Message } from "./message.ts";
import type { Task, TaskState } from "./task.ts";

export interface SendConfiguration {
  readonly acceptedOutputModes?: readonly string[];
  readonly taskPushNotificationConfig?: TaskPushNotificationConfig;
  readonly historyLength?: number;
  readonly returnImmediately?: boolean;
}

/** Where the task is delivered in addition to the response: registered together with the message. */
export interface ReplyTo {
  /** Unique within the task: the same id again changes where the rest goes. */
  readonly id: string;
  /** The carrier that delivers it. */
  readonly route: string;
  /** Where to, as the route understands it. */
  readonly address: string;
  /** Every event, or only how the task ends and when it is interrupted. */
  readonly wants: "events" | "outcome";
}

/** An answer that is owed: a cursor on a task's log, claimed by the process that delivers it. */
export interface Delivery {
  /** Whose task it is. */
  readonly scope: { readonly agent: string; readonly tenant: string; readonly owner: string };
  /** As it was when it was claimed. */
  readonly record: {
    readonly id: string;
    readonly taskId: string;
    readonly address: string;
    /** Number of the newest event that is delivered. */
    readonly cursor: number;
  };
  /** Aborted when the delivery is no longer this process's: deleted, replaced or taken over, or the engine is closing. */
  readonly signal: AbortSignal;
  /** Events that follow; none: there are none yet; undefined: the task is gone. */
  read(after: number): Promise<readonly StreamFrame[] | undefined>;
  /** The task as it stood at an event, or as it is now; undefined: it is gone. */
  task(at?: number): Promise<Task | undefined>;
  /** Everything up to the cursor is delivered, and more follows. Like all below, false if the delivery is lost. */
  hold(cursor: number): Promise<boolean>;
  /** Everything up to the cursor is delivered; what is left, or comes later, is claimed again. */
  release(cursor: number): Promise<boolean>;
  /** The event after the cursor failed. It is attempted again later, or `given-up` after too many attempts. */
  retry(cursor: number, error: string): Promise<"failed" | "given-up">;
  /** No further attempt can succeed. */
  giveUp(cursor: number, error: string): Promise<boolean>;
  /** Nothing will ever be left to deliver: the delivery is deleted. */
  done(): Promise<boolean>;
}

export interface SendInput {
  readonly message: Message;
  /** In dialects whose callers choose: the id of the task, made under it if there is none. The message names no task then. */
  readonly chosenId?: string;
  /** The caller's dialect knows no answer but a task: an agent's plain message then completes one. */
  readonly alwaysTask?: boolean;
  readonly configuration?: SendConfiguration;
  readonly metadata?: JsonObject;
  /** Set by carriers, never by what comes over a wire. The answer is a task then, as with `alwaysTask`. */
  readonly replyTo?: ReplyTo;
}

export interface ListInput {
  readonly contextId?: string;
  readonly status?: TaskState;
  /** 1 to 100. */
  readonly pageSize?: number;
  readonly pageToken?: string;
  readonly historyLength?: number;
  /** Milliseconds since the epoch, inclusive. */
  readonly statusTimestampAfter?: number;
  readonly includeArtifacts?: boolean;
  /** Nothing but this page is of interest: matches are not counted and no token for the next page is made. */
  readonly firstPageOnly?: boolean;
}

/** Every operation of an agent, in any dialect. */
export type Operation =
  | ({ readonly kind: "send" } & SendInput)
  | ({ readonly kind: "stream" } & SendInput)
  | { readonly kind: "get"; readonly id: string; readonly historyLength?: number }
  | ({ readonly kind: "list" } & ListInput)
  | { readonly kind: "cancel"; readonly id: string; readonly metadata?: JsonObject }
  /**
   * `after` is the number of the last event the caller has. `known` is what it has stored, for peers that neither number
   * their events nor begin with the task as it is.
   */
  | {
      readonly kind: "subscribe";
      readonly id: string;
      readonly after?: number;
      readonly known?: Pick<Task, "artifacts">;
    }
  | { readonly kind: "push-create"; readonly taskId: string; readonly config: TaskPushNotificationConfig }
  | { readonly kind: "push-get"; readonly taskId: string; readonly id: string }
  | { readonly kind: "push-list"; readonly taskId: string; readonly pageSize?: number; readonly pageToken?: string }
  | { readonly kind: "push-delete"; readonly taskId: string; readonly id: string }
  | { readonly kind: "extended-card" };

export type OperationKind = Operation["kind"];
export type OperationOf<Kind extends OperationKind> = Extract<Operation, { readonly kind: Kind }>;

/** A frame of a stream. Numbered if it is from a task's log, or is the task as of that number. */
export interface StreamFrame {
  readonly number?: number;
  readonly event: StreamEvent;
  /** The event as 1.0 JSON, serialised once for all its readers. */
  readonly json: string;
}

/** Batches, not single frames: a reader that lags gets more at once and costs no promise per event. */
export type FrameStream = AsyncIterable<readonly StreamFrame[]>;

export type SendOutcome = { readonly task: Task } | { readonly message: Message };

export interface TaskPage {
  readonly tasks: readonly Task[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

export interface PushConfigPage {
  readonly configs: readonly TaskPushNotificationConfig[];
  readonly nextPageToken: string;
}

/** What each operation answers with. */
export interface Outcomes {
  readonly send: SendOutcome;
  readonly stream: FrameStream;
  readonly get: Task;
  readonly list: TaskPage;
  readonly cancel: Task;
  readonly subscribe: FrameStream;
  readonly "push-create": TaskPushNotificationConfig;
  readonly "push-get": TaskPushNotificationConfig;
  readonly "push-list": PushConfigPage;
  readonly "push-delete": undefined;
  readonly "extended-card": AgentCard;
}

export type OutcomeOf<O extends Operation> = Outcomes[O["kind"]];

/** What was asked together with what came of it. */
export type AnswersByKind<Asked extends Operation = Operation> = {
  readonly [Kind in Asked["kind"]]: {
    readonly kind: Kind;
    readonly operation: Extract<Asked, { readonly kind: Kind }>;
    readonly outcome: Outcomes[Kind];
  };
};

/** The circumstances of one operation. Immutable; what an operation activated is returned, never written here. */
export interface CallContext {
  readonly caller: Caller;
  /** Partition within the agent; `""` when the caller named none. */
  readonly tenant: string;
  /** Extension URIs the caller asked for. */
  readonly extensions: readonly string[];
  /** Set when a repeat of this send must not run twice. */
  readonly idempotencyKey?: string;
  /** The interface the task was created over, stored with it: some dialects answer in the caller's own. */
  readonly dialect: string;
  /** A task that is canceled already is refused to be canceled again, as before 1.0. */
  readonly cancelsOnce?: boolean;
  /** Set by an agent that calls another: which agents its own request came through, itself included. */
  readonly hops?: Hops;
  /** Aborted when the caller has left before there was an outcome. A stream that is open is left by its iterator. */
  readonly signal?: Signal;
}

/**
 * Performs operations on one agent, in this process or elsewhere. Rejects with a ProtocolError for what the agent
 * answers. `Call` is what it reads of the circumstances.
 */
export interface Dispatcher<Call = CallContext> {
  dispatch<O extends Operation>(operation: O, call: Call): Promise<OutcomeOf<O>>;
}

export interface AuthenticationInfo {
  readonly scheme: string;
  readonly credentials?: string;
}

export interface TaskPushNotificationConfig {
  readonly id?: string;
  readonly taskId?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: AuthenticationInfo;
}
