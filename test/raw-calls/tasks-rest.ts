import { json, type RawCall } from "./raw-call.ts";

const BODY = '{"message":{"role":"user","parts":[{"type":"text","text":"hi"}],"messageId":"m1","contextId":"chain"}}';
const parts = [{ type: "text", text: "hi" }];

export const TASKS_REST: readonly RawCall[] = [
  {
    title: "send",
    ...json("POST /tasks/send"),
    body: BODY,
    status: 200,
    type: "application/json",
    answer: [
      { contextId: "chain", status: { state: "completed" }, artifacts: [{ artifactId: "echo", parts, index: 0 }] },
    ],
  },
  {
    title: "sendSubscribe",
    ...json("POST /tasks/sendSubscribe"),
    body: BODY,
    status: 200,
    type: "text/event-stream",
    answer: [
      { task: { contextId: "chain", status: { state: "submitted" } } },
      { task: { status: { state: "working" } } },
      { contextId: "chain", artifact: { artifactId: "echo", parts } },
      { task: { status: { state: "completed" }, artifacts: [{ parts }] } },
    ],
  },
  {
    title: "a task that is not there",
    line: "GET /tasks/none",
    status: 404,
    type: "application/json",
    answer: [{ error: { code: "task-not-found" } }],
  },
  {
    title: "a body that is no message",
    ...json("POST /tasks/send"),
    body: "[]",
    status: 400,
    type: "application/json",
    answer: [{ error: {} }],
  },
  {
    title: "a number that a double cannot hold",
    ...json("POST /tasks/send"),
    body: '{"message":{"role":"user","parts":[{"type":"data","data":{"a":1e400}}]}}',
    status: 400,
    type: "application/json",
    answer: [{ error: { code: "invalid-params" } }],
  },
];
