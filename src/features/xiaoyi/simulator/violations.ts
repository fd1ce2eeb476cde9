import type { Clock } from "../../../core/model/ports.ts";

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

/** A rule without a source is an assumption: breaking it is noted but fails nothing. */
const rule = (about: string, source?: string) => ({ about, source });

/** Every rule an agent can break, and how the platform reacts. */
export const RULES = {
  "upgrade-refused": rule("The connection was refused.", SOURCES.PLUGIN),
  "not-a-frame": rule("A frame is one JSON object in a text message; this one was ignored.", SOURCES.PLUGIN),
  "bare-json-rpc": rule("JSON-RPC outside an agent_response envelope is not accepted.", SOURCES.DEVICE_REPORT),
  "unknown-msg-type": rule("Unknown msgType; the frame was ignored."),
  "init-first": rule("clawd_bot_init must be the first frame of a connection.", SOURCES.PLUGIN),
  "wrong-agent-id": rule("agentId is not the one this connection was opened for; the frame was ignored."),
  "detail-not-a-string": rule("msgDetail must be a string that holds JSON, not the JSON itself.", SOURCES.PLUGIN),
  "bad-response": rule("The JSON-RPC response is not one the platform understands.", SOURCES.RESPONSE),
  "unknown-task": rule("There is no task with this taskId.", SOURCES.STREAM),
  "unknown-session": rule("sessionId belongs to no conversation of this task."),
  "task-id-mismatch": rule("result.taskId differs from the task that is being answered.", SOURCES.STREAM),
  "wrong-host": rule("The answer came over another server than the one its session belongs to."),
  "answer-to-nothing": rule("Nothing was asked that this answers."),
  "wrong-control-answer": rule("This is not how cancelling or clearing is answered.", SOURCES.CANCEL),
  "text-too-long": rule("The text of one frame is longer than other agents send; no limit is published."),
  "two-finals": rule("A task was ended a second time.", SOURCES.RESPONSE),
  "content-after-final": rule("Something came after final:true; the phone does not show it.", SOURCES.RESPONSE),
  "blanking-final": rule("An empty final with append:false wipes the answer off the screen.", SOURCES.DEVICE_REPORT),
  "final-while-asking": rule("A task that asks for input must stay open.", SOURCES.PLUGIN),
  "bad-data-part": rule("The phone cannot show this data part.", SOURCES.RESPONSE),
  "unknown-file": rule("fileId names no uploaded file.", SOURCES.CHANNEL_PLUGIN),
  "bad-upload": rule("The upload was refused.", SOURCES.CHANNEL_PLUGIN),
  "bad-push": rule("The push notification was refused.", SOURCES.TRIGGER),
  "http-status": rule("The endpoint answered with an unexpected HTTP status.", SOURCES.SPECIFICATION),
  "wrong-content-type": rule(
    "message/stream is answered with text/event-stream, everything else with JSON.",
    SOURCES.SPECIFICATION,
  ),
  "not-empty": rule("notifications/initialized is usually answered with 200 and no body."),
  "id-not-echoed": rule("The answer does not carry the id of its request.", SOURCES.STREAM),
  "task-id-not-echoed": rule("result.taskId must be params.id of the request.", SOURCES.STREAM),
  "no-final": rule("The answer ended without final:true.", SOURCES.RESPONSE),
  "session-id-too-long": rule("agentSessionId is longer than the 64 characters that the console keeps of credentials."),
};

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
  return RULES[rule].source === undefined;
}

export function describeViolation({ detail, rule, taskId }: Violation): string {
  const { about, source } = RULES[rule];
  const where = taskId === undefined ? "" : ` (task ${taskId})`;
  const text = `${rule}${where}: ${about}${detail === "" ? "" : ` ${detail}`}`;
  return source === undefined ? `Note: ${text}` : `${text} [${source}]`;
}

/** Older violations are dropped, to bound memory for an agent that keeps failing. */
const MAX_VIOLATIONS = 10_000;

export function createViolations(clock: Clock, onViolation: (violation: Violation) => void) {
  const list: Violation[] = [];
  const report: Report = (rule, detail, taskId) => {
    const violation = { rule, detail, taskId, at: clock.now() };
    list.push(violation);
    if (list.length > MAX_VIOLATIONS) list.shift();
    onViolation(violation);
  };
  return { list, report };
}
