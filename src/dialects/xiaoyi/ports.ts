import { isUrlPart, type Message } from "../../model/message.ts";
import type { DecodedMessage } from "./decode.ts";
import { splitInlineBytes } from "./metadata.ts";
import type { Language } from "./phone-texts.ts";

/** Something small about each of some conversations or tasks, beyond the life of a process. Never rejects. */
export interface PersistentMap {
  /** Ids, and what was noted of them. */
  entries(): Promise<readonly (readonly [string, string])[]>;
  get(id: string): Promise<string | undefined>;
  /** Resolves when it is kept. */
  set(id: string, value: string): Promise<void>;
  delete(id: string): Promise<void>;
}

/** Brings the files of a message here: where the platform has them, they are for a short time only. */
export interface FileIntake {
  /** Whether the message has any; it need not wait otherwise. */
  hasFiles(message: Message): boolean;
  /** The message as an agent can read it. Never rejects: what cannot be had is said in its place. */
  download(message: Message, language: Language): Promise<Message>;
}

/** Leaves files where the platform has them: an agent that fetches them needs no other copy. */
export const NO_INTAKE: FileIntake = {
  hasFiles: ({ parts }) => parts.some(isUrlPart),
  download: async (message) => ({
    ...message,
    parts: message.parts.map((part) => (isUrlPart(part) ? splitInlineBytes(part).part : part)),
  }),
};

/** The message as it is, where there is nothing to take in. */
export async function downloadFiles(message: Message, language: Language, intake = NO_INTAKE): Promise<Message> {
  return intake.hasFiles(message) ? intake.download(message, language) : message;
}

/** Told to users who left before the answer came, on whatever devices they have. */
export interface OfflineNotifications {
  /** Whoever speaks may be reached later. Resolves when it is kept where. Never rejects. */
  registerDevice(message: Pick<DecodedMessage, "sessionId" | "pushId" | "loginSessionId">): Promise<void>;
  /** Nobody will see how the task ends, so that the user is told then. */
  notifyWhenDone(taskId: string, sessionId: string): void;
  /** The user has seen how it ended after all. */
  cancel(taskId: string): void;
  /** Whether somebody is to be told how the task ends; also by what an earlier process was told. Never rejects. */
  isPending(taskId: string): Promise<boolean>;
  /** What a notification stood for that was tapped; undefined where it is gone. Never rejects. */
  readAnswer(pushDataId: string): Promise<string | undefined>;
}

export const NO_NOTIFICATIONS: OfflineNotifications = {
  registerDevice: () => Promise.resolve(),
  notifyWhenDone() {},
  cancel() {},
  isPending: () => Promise.resolve(false),
  readAnswer: () => Promise.resolve(undefined),
};
