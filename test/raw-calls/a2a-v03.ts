import { json, type RawCall } from "./a-call.ts";

const MESSAGE = '{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}';
const PROTO_MESSAGE = '{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}]}';
const artifacts = [{ artifactId: "echo", parts: [{ kind: "text", text: "hi" }] }];

export const A2A_V03: readonly RawCall[] = [
  {
    title: "JSON-RPC message/send",
    ...json("POST "),
    body: `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":${MESSAGE},"configuration":{"blocking":true}}}`,
    status: 200,
    type: "application/json",
    answer: [{ id: 1, result: { kind: "task", status: { state: "completed" }, artifacts } }],
  },
  {
    title: "JSON-RPC message/stream",
    ...json("POST "),
    body: `{"jsonrpc":"2.0","id":"s","method":"message/stream","params":{"message":${MESSAGE}}}`,
    status: 200,
    type: "text/event-stream",
    answer: [
      { id: "s", result: { kind: "task", status: { state: "submitted" } } },
      { id: "s", result: { kind: "status-update", status: { state: "working" }, final: false } },
      { id: "s", result: { kind: "artifact-update", artifact: artifacts[0] } },
      { id: "s", result: { kind: "status-update", status: { state: "completed" }, final: true } },
    ],
  },
  {
    title: "a message as 0.2 clients send it, without kind and with nulls",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":2,"method":"message/send","params":{"id":"x","message":{"role":"user","parts":[{"kind":"text","text":"hi","metadata":null}],"messageId":"m2","taskId":null},"configuration":{"acceptedOutputModes":["text"]}}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 2, result: { kind: "task", status: { state: "completed" } } }],
  },
  {
    title: "an unknown task",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"id":"none"}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 3, error: { code: -32001 } }],
  },
  {
    title: "a method nobody has",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":4,"method":"tasks/none","params":{}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 4, error: { code: -32601 } }],
  },
  {
    title: "an envelope without a method",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":5}',
    status: 400,
    type: "application/json",
    answer: [{ id: 5, error: { code: -32600 } }],
  },
  {
    title: "params that are none",
    ...json("POST "),
    body: '{"jsonrpc":"2.0","id":6,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[]}}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 6, error: { code: -32602 } }],
  },
  {
    title: "no JSON",
    ...json("POST "),
    body: '{"jsonrpc":"2.0",',
    status: 400,
    type: "application/json",
    answer: [{ id: null, error: { code: -32700 } }],
  },
  {
    title: "HTTP+JSON send",
    ...json("POST /rest/v1/message:send"),
    body: `{"message":${PROTO_MESSAGE}}`,
    status: 200,
    type: "application/json",
    answer: [{ task: { status: { state: "TASK_STATE_COMPLETED" }, history: [{ content: [{ text: "hi" }] }] } }],
  },
  {
    title: "HTTP+JSON stream, the message under its proto name",
    ...json("POST /rest/v1/message:stream"),
    body: `{"request":${PROTO_MESSAGE}}`,
    status: 200,
    type: "text/event-stream",
    answer: [
      { task: { status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { artifact: { artifactId: "echo" } } },
      { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, final: true } },
    ],
  },
  {
    title: "HTTP+JSON unknown task",
    line: "GET /rest/v1/tasks/none",
    status: 404,
    type: "application/json",
    answer: [{ code: -32001 }],
  },
];
