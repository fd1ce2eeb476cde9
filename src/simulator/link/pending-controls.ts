import type { Clock } from "../../model/ports.ts";
import { DecodeError } from "../json.ts";
import type { ControlAnswer, OutgoingControl } from "../phone.ts";
import { decodeControlAnswer } from "../task/decode-response.ts";
import type { Report } from "../violations.ts";
import type { Envelope } from "./wire-format.ts";

interface Pending {
  readonly control: OutgoingControl;
  readonly settle: (answer: ControlAnswer) => void;
}

/** Cancel and clear requests that wait for their answer. */
export class PendingControls {
  readonly #pending = new Set<Pending>();
  readonly #clock: Clock;
  readonly #report: Report;
  readonly #patienceMs: number;

  constructor(clock: Clock, report: Report, patienceMs: number) {
    this.#clock = clock;
    this.#report = report;
    this.#patienceMs = patienceMs;
  }

  add(control: OutgoingControl): Promise<ControlAnswer> {
    return new Promise((resolve) => {
      const stop = this.#clock.after(this.#patienceMs, () => pending.settle("no-answer"));
      const pending: Pending = {
        control,
        settle: (answer) => {
          stop();
          this.#pending.delete(pending);
          resolve(answer);
        },
      };
      this.#pending.add(pending);
    });
  }

  /** False if no pending request matches. */
  answer({ response, sessionId, taskId }: Envelope): boolean {
    const found = this.#find(response.id, taskId, sessionId);
    if (found === undefined) return false;
    if (response.kind === "error") found.settle("error");
    else if (response.kind === "answer") {
      try {
        found.settle(decodeControlAnswer(response.result, found.control));
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error;
        this.#report("wrong-control-answer", error.message, found.control.taskId);
        found.settle("error");
      }
    }
    return true;
  }

  /** Matched by request id first; some agents send the task or session id in its place. */
  #find(id: unknown, taskId: string, sessionId: string): Pending | undefined {
    const all = [...this.#pending];
    return (
      all.find(({ control }) => control.requestId === id || (control.taskId !== undefined && control.taskId === id)) ??
      all.find(({ control }) => {
        const { appSessionId, conversationId } = control.sender;
        const sessions = [appSessionId, conversationId];
        return sessions.includes(sessionId) && [control.requestId, control.taskId, ...sessions].includes(taskId);
      })
    );
  }
}
