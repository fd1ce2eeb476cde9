import { callsWith, JSON_TYPE, type RawCall } from "./raw-call.ts";

const { http, rpc } = callsWith(JSON_TYPE, "application/json");
const MESSAGE = '{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}';
const PROTO_MESSAGE = '{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}]}';
const artifacts = [{ artifactId: "echo", parts: [{ kind: "text", text: "hi" }] }];

export const A2A_V03: readonly RawCall[] = [
  rpc(
    "JSON-RPC message/send",
    `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":${MESSAGE},"configuration":{"blocking":true}}}`,
    { id: 1, result: { kind: "task", status: { state: "completed" }, artifacts } },
  ),
  rpc(
    "JSON-RPC message/stream",
    `{"jsonrpc":"2.0","id":"s","method":"message/stream","params":{"message":${MESSAGE}}}`,
    [
      { id: "s", result: { kind: "task", status: { state: "submitted" } } },
      { id: "s", result: { kind: "status-update", status: { state: "working" }, final: false } },
      { id: "s", result: { kind: "artifact-update", artifact: artifacts[0] } },
      { id: "s", result: { kind: "status-update", status: { state: "completed" }, final: true } },
    ],
  ),
  rpc(
    "a message as 0.2 clients send it, without kind and with nulls",
    '{"jsonrpc":"2.0","id":2,"method":"message/send","params":{"id":"x","message":{"role":"user","parts":[{"kind":"text","text":"hi","metadata":null}],"messageId":"m2","taskId":null},"configuration":{"acceptedOutputModes":["text"]}}}',
    { id: 2, result: { kind: "task", status: { state: "completed" } } },
  ),
  rpc("an unknown task", '{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"id":"none"}}', {
    id: 3,
    error: { code: -32001, message: "Task not found." },
  }),
  rpc(
    "the push config of an unknown task",
    '{"jsonrpc":"2.0","id":3,"method":"tasks/pushNotificationConfig/get","params":{"id":"none","pushNotificationConfigId":"default"}}',
    { id: 3, error: { code: -32001, message: "Task not found." } },
  ),
  rpc(
    "a message without an id",
    '{"jsonrpc":"2.0","id":3,"method":"message/send","params":{"message":{"kind":"message","role":"user","parts":[{"kind":"text","text":"hi"}]}}}',
    { id: 3, error: { code: -32602, data: [{}, { fieldViolations: [{ field: "message.messageId" }] }] } },
  ),
  rpc(
    "a part of an unknown type",
    '{"jsonrpc":"2.0","id":3,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"type":"unsupported_type","text":"hi"}]}}}',
    { id: 3, error: { code: -32602 } },
  ),
  rpc("an unknown method", '{"jsonrpc":"2.0","id":4,"method":"tasks/none","params":{}}', {
    id: 4,
    error: { code: -32601 },
  }),
  rpc("an envelope without a method", '{"jsonrpc":"2.0","id":5}', { id: 5, error: { code: -32600 } }),
  rpc(
    "params that are none",
    '{"jsonrpc":"2.0","id":6,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[]}}}',
    { id: 6, error: { code: -32602 } },
  ),
  rpc("an unknown method, without an id", '{"jsonrpc":"2.0","method":"message/ssend","params":{}}', {
    id: null,
    error: { code: -32601 },
  }),
  rpc("params that are none, without an id", '{"jsonrpc":"2.0","method":"message/send","params":{"":"not_a_dict"}}', {
    id: null,
    error: { code: -32602 },
  }),
  rpc("no JSON", '{"jsonrpc":"2.0",', { id: null, error: { code: -32700 } }),
  rpc(
    "a number that a double cannot hold",
    '{"jsonrpc":"2.0","id":6,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"a":1e400}}]}}}',
    { id: 6, error: { code: -32602 } },
  ),
  http(
    "HTTP+JSON a number that a double cannot hold",
    "POST /rest/v1/message:send",
    '{"message":{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}],"metadata":{"a":1e400}}}',
    { code: -32602 },
    { status: 400 },
  ),
  http("HTTP+JSON send", "POST /rest/v1/message:send", `{"message":${PROTO_MESSAGE}}`, {
    task: { status: { state: "TASK_STATE_COMPLETED" }, history: [{ content: [{ text: "hi" }] }] },
  }),
  http(
    "HTTP+JSON stream, the message under its proto name",
    "POST /rest/v1/message:stream",
    `{"request":${PROTO_MESSAGE}}`,
    [
      { task: { status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { artifact: { artifactId: "echo" } } },
      { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, final: true } },
    ],
  ),
  http(
    "HTTP+JSON a message without an id",
    "POST /rest/v1/message:send",
    '{"message":{"role":"ROLE_USER","content":[{"text":"hi"}]}}',
    { code: -32602 },
    { status: 400 },
  ),
  http(
    "HTTP+JSON unknown task",
    "GET /rest/v1/tasks/none",
    undefined,
    { code: -32001, message: "Task not found." },
    { status: 404 },
  ),
  http(
    "HTTP+JSON push config of an unknown task",
    "GET /rest/v1/tasks/none/pushNotificationConfigs/default",
    undefined,
    { code: -32001, message: "Task not found." },
    { status: 404 },
  ),
];
