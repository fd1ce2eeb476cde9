import type { Clock } from "../model/ports.ts";

/** Sources of what is known about the platform: pages of Huawei's developer documentation by number. */
export const SOURCES = {
  SPECIFICATION: "Huawei, Agent2Agent specification (0000002500412353)",
  STREAM: "Huawei, Agent2Agent message/stream",
  CANCEL: "Huawei, Agent2Agent tasks/cancel and clearContext",
  RESPONSE: "Huawei, Agent2Agent response data (0000002762862787)",
  TRIGGER: "Huawei, triggers and notifications (0000002735779650)",
  PLUGIN: "the publisher's plugin @ynhcj/xiaoyi 2.6",
  CHANNEL_PLUGIN: "the publisher's plugin @ynhcj/xiaoyi-channel",
  DEVICE_REPORT: "seen on devices (clowder-ai, F151)",
} as const;

interface RuleText {
  readonly about: string;
  /** The document with the rule. A rule without one is an assumption: breaking it is noted but fails nothing. */
  readonly source?: string;
}

/** Every rule an agent can break, and how the platform reacts. */
export const RULES = {
  "upgrade-refused": { about: "The connection was refused.", source: SOURCES.PLUGIN },
  "not-a-frame": {
    about: "A frame is one JSON object in a text message; this one was ignored.",
    source: SOURCES.PLUGIN,
  },
  "bare-json-rpc": {
    about: "JSON-RPC outside an agent_response envelope is not accepted.",
    source: SOURCES.DEVICE_REPORT,
  },
  "unknown-msg-type": { about: "Unknown msgType; the frame was ignored." },
  "init-first": { about: "clawd_bot_init must be the first frame of a connection.", source: SOURCES.PLUGIN },
  "wrong-agent-id": { about: "agentId is not the one this connection was opened for; the frame was ignored." },
  "detail-not-a-string": {
    about: "msgDetail must be a string that holds JSON, not the JSON itself.",
    source: SOURCES.PLUGIN,
  },
  "bad-response": { about: "The JSON-RPC response is not one the platform understands.", source: SOURCES.RESPONSE },
  "unknown-task": { about: "There is no task with this taskId.", source: SOURCES.STREAM },
  "unknown-session": { about: "sessionId belongs to no conversation of this task." },
  "task-id-mismatch": { about: "result.taskId differs from the task that is being answered.", source: SOURCES.STREAM },
  "wrong-host": { about: "The answer came over another server than the one its session belongs to." },
  "answer-to-nothing": { about: "Nothing was asked that this answers." },
  "wrong-control-answer": { about: "This is not how cancelling or clearing is answered.", source: SOURCES.CANCEL },
  "text-too-long": { about: "The text of one frame is longer than other agents send; no limit is published." },
  "two-finals": { about: "A task was ended a second time.", source: SOURCES.RESPONSE },
  "content-after-final": {
    about: "Something came after final:true; the phone does not show it.",
    source: SOURCES.RESPONSE,
  },
  "blanking-final": {
    about: "An empty final with append:false wipes the answer off the screen.",
    source: SOURCES.DEVICE_REPORT,
  },
  "final-while-asking": { about: "A task that asks for input must stay open.", source: SOURCES.PLUGIN },
  "bad-data-part": { about: "The phone cannot show this data part.", source: SOURCES.RESPONSE },
  "unknown-file": { about: "fileId names no uploaded file.", source: SOURCES.CHANNEL_PLUGIN },
  "bad-upload": { about: "The upload was refused.", source: SOURCES.CHANNEL_PLUGIN },
  "bad-push": { about: "The push notification was refused.", source: SOURCES.TRIGGER },
  "http-status": { about: "The endpoint answered with an unexpected HTTP status.", source: SOURCES.SPECIFICATION },
  "wrong-content-type": {
    about: "message/stream is answered with text/event-stream, everything else with JSON.",
    source: SOURCES.SPECIFICATION,
  },
  "not-empty": { about: "notifications/initialized is usually answered with 200 and no body." },
  "id-not-echoed": { about: "The answer does not carry the id of its request.", source: SOURCES.STREAM },
  "task-id-not-echoed": { about: "result.taskId must be params.id of the request.", source: SOURCES.STREAM },
  "no-final": { about: "The answer ended without final:true.", source: SOURCES.RESPONSE },
  "session-id-too-long": {
    about: "agentSessionId is longer than the 64 characters that the console keeps of credentials.",
  },
} as const satisfies Record<string, RuleText>;

export type Rule = keyof typeof RULES;

export interface Violation {
  readonly rule: Rule;
  /** What was observed. Never contains a credential. */
  readonly detail: string;
  readonly taskId: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export type Report = (rule: Rule, detail: string, taskId?: string) => void;

/** Whether the violation is only a note, because the rule is not documented. */
export function isNote({ rule }: Violation): boolean {
  return sourceOf(rule) === undefined;
}

function sourceOf(rule: Rule): string | undefined {
  const { source }: RuleText = RULES[rule];
  return source;
}

export function describeViolation(violation: Violation): string {
  const { detail, rule, taskId } = violation;
  const where = taskId === undefined ? "" : ` (task ${taskId})`;
  const text = `${rule}${where}: ${RULES[rule].about}${detail === "" ? "" : ` ${detail}`}`;
  return isNote(violation) ? `Note: ${text}` : `${text} [${sourceOf(rule)}]`;
}

/** Older violations are dropped, to bound memory for an agent that keeps failing. */
const MAX_VIOLATIONS = 10_000;

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
    if (this.list.length > MAX_VIOLATIONS) this.list.shift();
    this.#onViolation(violation);
  };
}
