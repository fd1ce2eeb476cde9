import type { OfflineNotifications } from "../ports.ts";

/** Records its calls, and answers taps with what the test provides. */
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

  /** Tasks left by an earlier process. */
  readonly awaited = new Set<string>();
  isPending = async (taskId: string): Promise<boolean> => this.awaited.has(taskId);

  /** All calls except `registerDevice`. */
  get told(): unknown[][] {
    return this.calls.filter(([what]) => what !== "heard");
  }
}
