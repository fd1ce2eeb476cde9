import { isUrlPart, type Message } from "../../../core/model/message.ts";
import type { ReplyTo } from "../../../core/model/operation.ts";
import type { DecodedMessage } from "../codec/decode-message.ts";
import { splitInlineBytes } from "../codec/metadata.ts";
import type { Language } from "../codec/phone-texts.ts";
import type { PrepareEvent } from "./upload.ts";

/** Stores a short string for each of some conversations, across restarts. Never rejects. */
export interface PersistentMap {
  entries(): Promise<readonly (readonly [string, string])[]>;
  get(id: string): Promise<string | undefined>;
  /** Resolves when the value is stored. */
  set(id: string, value: string): Promise<void>;
}

/** What an entry of either access mode gives its users. */
export interface UserServices {
  /** Of the server's own texts. */
  readonly language: Language;
  /** Absent: users who left are not notified. */
  readonly notifications?: OfflineNotifications | undefined;
  /** Contexts of cleared sessions, by session id. Absent: they are forgotten with the process. */
  readonly cleared?: PersistentMap | undefined;
  /** Absent: files stay at the platform. */
  readonly intake?: FileIntake | undefined;
  /** Absent: files of answers are represented by their names and links. */
  readonly prepare?: PrepareEvent | undefined;
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

export async function downloadFiles(message: Message, language: Language, intake = NO_INTAKE): Promise<Message> {
  return intake.hasFiles(message) ? intake.download(message, language) : message;
}

/** Id of the delivery of an answer to the platform or, if the user has left, to their devices: one per task. */
export const ANSWER_DELIVERY = "answer";

/** Notifies users who left before the answer arrived, on their devices. */
export interface OfflineNotifications {
  /** Remembers the sender's device for later notifications. Resolves when it is stored. Never rejects. */
  registerDevice(message: Pick<DecodedMessage, "sessionId" | "pushId" | "loginSessionId">): Promise<void>;
  /** For a user who has left: they are notified when the task ends or asks for input. */
  replyTo(sessionId: string): ReplyTo;
  /** Whether the user has a device that can be notified. Never rejects. */
  isReachable(sessionId: string): Promise<boolean>;
  /** For a user who reads the answer: they are notified only if they leave before its end. */
  attend(sessionId: string): Attendance;
  /** The answer behind a tapped notification; undefined if it no longer exists. Never rejects. */
  readAnswer(pushDataId: string): Promise<string | undefined>;
}

export interface Attendance {
  /** To be registered with the message. */
  readonly replyTo: ReplyTo;
  /** The user has read the answer to its end. */
  finished(): void;
  /** The user has left, or the message was refused. */
  left(): void;
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
