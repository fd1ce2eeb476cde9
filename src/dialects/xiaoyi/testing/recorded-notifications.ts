import type { OfflineNotifications } from "../ports.ts";

/** Writes down what it is told, and answers taps with what a test says. */
export class RecordedNotifications implements OfflineNotifications {
  readonly calls: unknown[][] = [];
  answer: string | undefined;

  registerDevice = async ({
    loginSessionId,
    pushId,
    sessionId,
  }: Parameters<OfflineNotifications["registerDevice"]>[0]): Promise<void> => {
    this.calls.push(["heard", sessionId, pushId, loginSessionId]);
  };

  notifyWhenDone = (...call: unknown[]): void => void this.calls.push(["left", ...call]);

  cancel = (...call: unknown[]): void => void this.calls.push(["seen", ...call]);

  readAnswer = async (...call: unknown[]): Promise<string | undefined> => {
    this.calls.push(["recall", ...call]);
    return this.answer;
  };

  /** Of an earlier process. */
  readonly awaited = new Set<string>();
  isPending = async (taskId: string): Promise<boolean> => this.awaited.has(taskId);

  /** All but who was heard. */
  get told(): unknown[][] {
    return this.calls.filter(([what]) => what !== "heard");
  }
}
