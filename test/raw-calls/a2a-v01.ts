import { json, type RawCall } from "./raw-call.ts";

const MESSAGE = '{"role":"user","parts":[{"type":"text","text":"hi"}]}';
const artifact = { index: 0, parts: [{ type: "text", text: "hi" }] };

export const A2A_V01: readonly RawCall[] = [
  {
    title: "tasks/send with an id of the caller's",
    ...json("POST "),
    body: `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"mine","sessionId":"session","message":${MESSAGE}}}`,
    status: 200,
    type: "application/json",
    answer: [
      { id: 1, result: { id: "mine", sessionId: "session", status: { state: "completed" }, artifacts: [artifact] } },
    ],
  },
  {
    title: "tasks/get of that task is answered in the dialect it was made over",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"id":"mine"}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 2, result: { id: "mine", sessionId: "session", artifacts: [artifact] } }],
  },
  {
    title: "the same task in 1.0",
    line: "POST ",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: '{"jsonrpc":"2.0","id":3,"method":"GetTask","params":{"id":"mine"}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 3, result: { id: "mine", contextId: "session", status: { state: "TASK_STATE_COMPLETED" } } }],
  },
  {
    title: "a number that a double cannot hold",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":4,"method":"tasks/send","params":{"id":"far","message":{"role":"user","parts":[{"type":"data","data":{"a":1e400}}]}}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 4, error: { code: -32602 } }],
  },
  {
    title: "tasks/sendSubscribe",
    ...json("POST "),
    body: `{"jsonrpc":"2.0","id":4,"method":"tasks/sendSubscribe","params":{"id":"streamed","message":${MESSAGE}}}`,
    status: 200,
    type: "text/event-stream",
    answer: [
      { id: 4, result: { id: "streamed", status: { state: "submitted" }, final: false } },
      { id: 4, result: { id: "streamed", status: { state: "working" }, final: false } },
      { id: 4, result: { id: "streamed", artifact } },
      { id: 4, result: { id: "streamed", status: { state: "completed" }, final: true } },
    ],
  },
  {
    title: "an unknown task, asked for by version",
    line: "POST ",
    headers: { "content-type": "application/json", "a2a-version": "0.1" },
    body: '{"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"id":"none"}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 5, error: { code: -32001 } }],
  },
  {
    title: "a message without parts",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":6,"method":"tasks/send","params":{"id":"empty","message":{"role":"user","parts":[]}}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 6, error: { code: -32602 } }],
  },
];
