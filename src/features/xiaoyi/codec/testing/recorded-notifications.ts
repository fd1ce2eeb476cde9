import type { Delivery, ReplyTo } from "../../../../core/model/operation.ts";
import { ANSWER_DELIVERY, type Attendance, type OfflineNotifications } from "../../runtime/ports.ts";

export const NOTIFICATION_ROUTE = "notifications";

/** Records its calls and the notifications that are due, and answers taps with what the test provides. */
export class RecordedNotifications implements OfflineNotifications {
  readonly calls: unknown[][] = [];
  /** Tasks and conversations whose users are notified, in order. */
  readonly notified: [taskId: string, sessionId: string][] = [];
  answer: string | undefined;

  registerDevice = async ({
    loginSessionId,
    pushId,
    sessionId,
  }: Parameters<OfflineNotifications["registerDevice"]>[0]): Promise<void> => {
    this.calls.push(["device", sessionId, pushId, loginSessionId]);
  };

  replyTo = (sessionId: string): ReplyTo => {
    return { id: ANSWER_DELIVERY, route: NOTIFICATION_ROUTE, address: sessionId, wants: "outcome" };
  };

  isReachable = async (): Promise<boolean> => true;

  attend = (sessionId: string): Attendance => {
    this.calls.push(["attend", sessionId]);
    return {
      replyTo: this.replyTo(sessionId),
      finished: () => void this.calls.push(["finished"]),
      left: () => void this.calls.push(["left"]),
    };
  };

  readAnswer = async (pushDataId: string): Promise<string | undefined> => {
    this.calls.push(["read", pushDataId]);
    return this.answer;
  };

  /** The route of the notifications, if an engine serves it. */
  deliver = async (delivery: Delivery): Promise<void> => {
    this.notified.push([delivery.record.taskId, delivery.record.address]);
    await delivery.done();
  };
}
