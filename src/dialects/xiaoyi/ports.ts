import { isUrlPart, type Message } from "../../model/message.ts";
import type { DecodedMessage } from "./decode.ts";
import { splitInlineBytes } from "./metadata.ts";
import type { Language } from "./phone-texts.ts";

/** Stores a short string for each of some conversations or tasks, across restarts. Never rejects. */
export interface PersistentMap {
  entries(): Promise<readonly (readonly [string, string])[]>;
  get(id: string): Promise<string | undefined>;
  /** Resolves when the value is stored. */
  set(id: string, value: string): Promise<void>;
  delete(id: string): Promise<void>;
}

/** Downloads the files of a message: the platform offers them only for a short time. */
export interface FileIntake {
  /** Whether the message has files; if not, it need not wait. */
  hasFiles(message: Message): boolean;
  /**
   * The message with its files readable by an agent. Never rejects: a file that cannot be fetched is replaced by an
   * error text.
   */
  download(message: Message, language: Language): Promise<Message>;
}

/** Leaves files at the platform: an agent that fetches them needs no other copy. */
export const NO_INTAKE: FileIntake = {
  hasFiles: ({ parts }) => parts.some(isUrlPart),
  download: async (message) => ({
    ...message,
    parts: message.parts.map((part) => (isUrlPart(part) ? splitInlineBytes(part).part : part)),
  }),
};

/** Returns the message unchanged if it has no files. */
export async function downloadFiles(message: Message, language: Language, intake = NO_INTAKE): Promise<Message> {
  return intake.hasFiles(message) ? intake.download(message, language) : message;
}

/** Notifies users who left before the answer arrived, on their devices. */
export interface OfflineNotifications {
  /** Remembers the sender's device for later notifications. Resolves when it is stored. Never rejects. */
  registerDevice(message: Pick<DecodedMessage, "sessionId" | "pushId" | "loginSessionId">): Promise<void>;
  /** The user has left: notify them when the task ends. */
  notifyWhenDone(taskId: string, sessionId: string): void;
  /** The user has seen the end of the task after all. */
  cancel(taskId: string): void;
  /** Whether a notification is pending for the task, also one from an earlier process. Never rejects. */
  isPending(taskId: string): Promise<boolean>;
  /** The answer behind a tapped notification; undefined if it no longer exists. Never rejects. */
  readAnswer(pushDataId: string): Promise<string | undefined>;
}

export const NO_NOTIFICATIONS: OfflineNotifications = {
  registerDevice: () => Promise.resolve(),
  notifyWhenDone() {},
  cancel() {},
  isPending: () => Promise.resolve(false),
  readAnswer: () => Promise.resolve(undefined),
};
