import type { Clock } from "../../../../core/model/ports.ts";
import { DecodeError } from "../json.ts";
import type { ControlResult, OutgoingControl } from "../phone.ts";
import { decodeControlResult } from "../task/decode-response.ts";
import type { Report } from "../violations.ts";
import type { Envelope } from "./wire-format.ts";

interface Pending {
  readonly control: OutgoingControl;
  readonly settle: (answer: ControlResult) => void;
}

/** Cancel and clear requests that wait for their answer. */
export function createPendingControls(rules: {
  readonly clock: Clock;
  readonly report: Report;
  readonly controlPatienceMs: number;
}) {
  const { clock, controlPatienceMs, report } = rules;
  const all = new Set<Pending>();

  function add(control: OutgoingControl): Promise<ControlResult> {
    return new Promise((resolve) => {
      const stop = clock.after(controlPatienceMs, () => pending.settle("no-answer"));
      const pending: Pending = {
        control,
        settle: (answer) => {
          stop();
          all.delete(pending);
          resolve(answer);
        },
      };
      all.add(pending);
    });
  }

  /** False if no pending request matches. */
  function answer(envelope: Envelope): boolean {
    const found = findPending([...all], envelope);
    if (found === undefined) return false;
    const { response } = envelope;
    if (response.kind === "error") found.settle("error");
    else if (response.kind === "answer") {
      try {
        found.settle(decodeControlResult(response.result, found.control));
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error;
        report("wrong-control-answer", error.message, found.control.taskId);
        found.settle("error");
      }
    }
    return true;
  }

  return { add, answer };
}

/** Matched by request id first; some agents send the task or session id in its place. */
function findPending(all: readonly Pending[], { response, sessionId, taskId }: Envelope): Pending | undefined {
  const isNamed = ({ control }: Pending): boolean =>
    response.id === control.requestId || (control.taskId !== undefined && response.id === control.taskId);
  const isOfSession = ({ control }: Pending): boolean => {
    const sessions = [control.sender.appSessionId, control.sender.conversationId];
    return sessions.includes(sessionId) && [control.requestId, control.taskId, ...sessions].includes(taskId);
  };
  return all.find(isNamed) ?? all.find(isOfSession);
}
