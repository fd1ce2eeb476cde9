import type { Notices } from "../notices.ts";

/** Writes down what it is told, and answers taps with what a test says. */
export class NotedNotices implements Notices {
  readonly calls: unknown[][] = [];
  answer: string | undefined;

  heard = async ({ loginSessionId, pushId, sessionId }: Parameters<Notices["heard"]>[0]): Promise<void> => {
    this.calls.push(["heard", sessionId, pushId, loginSessionId]);
  };

  left = (...call: unknown[]): void => void this.calls.push(["left", ...call]);

  seen = (...call: unknown[]): void => void this.calls.push(["seen", ...call]);

  recall = async (...call: unknown[]): Promise<string | undefined> => {
    this.calls.push(["recall", ...call]);
    return this.answer;
  };

  /** Of an earlier process. */
  readonly awaited = new Set<string>();
  awaits = async (taskId: string): Promise<boolean> => this.awaited.has(taskId);

  /** All but who was heard. */
  get told(): unknown[][] {
    return this.calls.filter(([what]) => what !== "heard");
  }
}
