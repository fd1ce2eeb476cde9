import { callsWith, JSON_TYPE, type RawCall } from "./raw-call.ts";

const { http } = callsWith(JSON_TYPE, "application/json");
const BODY = '{"message":{"role":"user","parts":[{"type":"text","text":"hi"}],"messageId":"m1","contextId":"chain"}}';
const parts = [{ type: "text", text: "hi" }];

export const TASKS_REST: readonly RawCall[] = [
  http("send", "POST /tasks/send", BODY, {
    contextId: "chain",
    status: { state: "completed" },
    artifacts: [{ artifactId: "echo", parts, index: 0 }],
  }),
  http("sendSubscribe", "POST /tasks/sendSubscribe", BODY, [
    { task: { contextId: "chain", status: { state: "submitted" } } },
    { task: { status: { state: "working" } } },
    { contextId: "chain", artifact: { artifactId: "echo", parts } },
    { task: { status: { state: "completed" }, artifacts: [{ parts }] } },
  ]),
  http(
    "a task that is not there",
    "GET /tasks/none",
    undefined,
    { error: { code: "task-not-found" } },
    { status: 404 },
  ),
  http("a body that is no message", "POST /tasks/send", "[]", { error: {} }, { status: 400 }),
  http(
    "a number that a double cannot hold",
    "POST /tasks/send",
    '{"message":{"role":"user","parts":[{"type":"data","data":{"a":1e400}}]}}',
    { error: { code: "invalid-params" } },
    { status: 400 },
  ),
];
