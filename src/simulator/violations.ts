import type { Clock } from "../model/ports.ts";

/** Everything an agent can do wrong, and what the platform makes of it. */
export const RULES = {
  "upgrade-refused": "The connection was refused.",
  "not-a-frame": "A frame is one JSON object in a text message; this one was ignored.",
  "bare-json-rpc": "JSON-RPC outside an agent_response envelope is not accepted.",
  "unknown-msg-type": "There is no such msgType; the frame was ignored.",
  "init-first": "clawd_bot_init must be the first frame of a connection.",
  "wrong-agent-id": "agentId is not the one this connection was opened for; the frame was ignored.",
  "detail-not-a-string": "msgDetail must be a string that holds JSON, not the JSON itself.",
  "bad-response": "The JSON-RPC response is not one the platform understands.",
  "unknown-task": "There is no task with this taskId.",
  "unknown-session": "sessionId belongs to no conversation of this task.",
  "task-id-mismatch": "result.taskId differs from the task that is being answered.",
  "wrong-host": "The answer came over another server than the one its session belongs to.",
  "answer-to-nothing": "Nobody asked what this answers.",
  "wrong-control-answer": "This is not how cancelling or clearing is answered.",
  "text-too-long": "The text of one frame is longer than the platform carries.",
  "two-finals": "A task was ended a second time.",
  "content-after-final": "Something came after final:true; the phone does not show it.",
  "blanking-final": "An empty final with append:false wipes the answer off the screen.",
  "final-while-asking": "A task that asks for input must stay open.",
  "bad-data-part": "The phone cannot show this data part.",
  "unknown-file": "fileId names no uploaded file.",
  "bad-upload": "The upload was refused.",
  "bad-push": "The push notification was refused.",
  "http-status": "The endpoint answered with an unexpected HTTP status.",
  "wrong-content-type": "message/stream is answered with text/event-stream, everything else with JSON.",
  "not-empty": "notifications/initialized is answered with 200 and no body.",
  "id-not-echoed": "The answer does not carry the id of its request.",
  "task-id-not-echoed": "result.taskId must be params.id of the request.",
  "no-final": "The answer ended without final:true.",
  "session-id-too-long": "agentSessionId is longer than the 64 characters that are safe.",
} as const satisfies Record<string, string>;

export type Rule = keyof typeof RULES;

export interface Violation {
  readonly rule: Rule;
  /** What was seen. Never holds a credential. */
  readonly detail: string;
  readonly taskId: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export type Report = (rule: Rule, detail: string, taskId?: string) => void;

export function describeViolation({ detail, rule, taskId }: Violation): string {
  const where = taskId === undefined ? "" : ` (task ${taskId})`;
  return `${rule}${where}: ${RULES[rule]}${detail === "" ? "" : ` ${detail}`}`;
}

/** Keeps the newest; an agent that is wrong all day must not fill the memory. */
const MOST_KEPT = 10_000;

export class Violations {
  readonly list: Violation[] = [];
  readonly #clock: Clock;
  readonly #onViolation: (violation: Violation) => void;

  constructor(clock: Clock, onViolation: (violation: Violation) => void) {
    this.#clock = clock;
    this.#onViolation = onViolation;
  }

  readonly report: Report = (rule, detail, taskId) => {
    const violation = { rule, detail, taskId, at: this.#clock.now() };
    this.list.push(violation);
    if (this.list.length > MOST_KEPT) this.list.shift();
    this.#onViolation(violation);
  };
}
