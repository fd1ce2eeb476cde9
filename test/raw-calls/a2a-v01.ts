import { callsWith, JSON_TYPE, type RawCall } from "./raw-call.ts";

const { rpc } = callsWith(JSON_TYPE, "application/json");
const MESSAGE = '{"role":"user","parts":[{"type":"text","text":"hi"}]}';
const artifact = { index: 0, parts: [{ type: "text", text: "hi" }] };

export const A2A_V01: readonly RawCall[] = [
  rpc(
    "tasks/send with an id of the caller's",
    `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"mine","sessionId":"session","message":${MESSAGE}}}`,
    { id: 1, result: { id: "mine", sessionId: "session", status: { state: "completed" }, artifacts: [artifact] } },
  ),
  rpc(
    "tasks/get of that task is answered in the dialect it was made over",
    '{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"id":"mine"}}',
    { id: 2, result: { id: "mine", sessionId: "session", artifacts: [artifact] } },
  ),
  rpc(
    "the same task in 1.0",
    '{"jsonrpc":"2.0","id":3,"method":"GetTask","params":{"id":"mine"}}',
    { id: 3, result: { id: "mine", contextId: "session", status: { state: "TASK_STATE_COMPLETED" } } },
    { headers: { ...JSON_TYPE, "a2a-version": "1.0" } },
  ),
  rpc(
    "a number that a double cannot hold",
    '{"jsonrpc":"2.0","id":4,"method":"tasks/send","params":{"id":"far","message":{"role":"user","parts":[{"type":"data","data":{"a":1e400}}]}}}',
    { id: 4, error: { code: -32602 } },
  ),
  rpc(
    "tasks/sendSubscribe",
    `{"jsonrpc":"2.0","id":4,"method":"tasks/sendSubscribe","params":{"id":"streamed","message":${MESSAGE}}}`,
    [
      { id: 4, result: { id: "streamed", status: { state: "submitted" }, final: false } },
      { id: 4, result: { id: "streamed", status: { state: "working" }, final: false } },
      { id: 4, result: { id: "streamed", artifact } },
      { id: 4, result: { id: "streamed", status: { state: "completed" }, final: true } },
    ],
  ),
  rpc(
    "an unknown task, asked for by version",
    '{"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"id":"none"}}',
    { id: 5, error: { code: -32001 } },
    { headers: { ...JSON_TYPE, "a2a-version": "0.1" } },
  ),
  rpc(
    "a message without parts",
    '{"jsonrpc":"2.0","id":6,"method":"tasks/send","params":{"id":"empty","message":{"role":"user","parts":[]}}}',
    { id: 6, error: { code: -32602 } },
  ),
];
