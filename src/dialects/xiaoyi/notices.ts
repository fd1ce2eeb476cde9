import type { HeardMessage } from "./decode.ts";

/** Told to users who left before the answer came, on whatever devices they have. */
export interface Notices {
  /** Whoever speaks may be reached later. Resolves when it is kept where. Never rejects. */
  heard(message: Pick<HeardMessage, "sessionId" | "pushId" | "loginSessionId">): Promise<void>;
  /** Nobody will see how the task ends, so that the user is told then. */
  left(taskId: string, sessionId: string): void;
  /** The user has seen how it ended after all. */
  seen(taskId: string): void;
  /** Whether somebody is to be told how the task ends; also by what an earlier process was told. Never rejects. */
  awaits(taskId: string): Promise<boolean>;
  /** What a notification stood for that was tapped; undefined where it is gone. Never rejects. */
  recall(pushDataId: string): Promise<string | undefined>;
}

export const NO_NOTICES: Notices = {
  heard: () => Promise.resolve(),
  left() {},
  seen() {},
  awaits: () => Promise.resolve(false),
  recall: () => Promise.resolve(undefined),
};
