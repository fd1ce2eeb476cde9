import type { RawCall } from "./a-call.ts";

const headers = { "content-type": "application/json", "a2a-version": "1.0" };
const MESSAGE = '{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}';
const artifacts = [{ artifactId: "echo", parts: [{ text: "hi" }] }];

export const A2A_V1: readonly RawCall[] = [
  {
    title: "JSON-RPC SendMessage",
    line: "POST ",
    headers,
    body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${MESSAGE}}}`,
    status: 200,
    type: "application/json",
    answer: [{ jsonrpc: "2.0", id: 1, result: { task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts } } }],
  },
  {
    title: "JSON-RPC SendStreamingMessage, with a trailing slash",
    line: "POST /",
    headers,
    body: `{"jsonrpc":"2.0","id":"s","method":"SendStreamingMessage","params":{"message":${MESSAGE}}}`,
    status: 200,
    type: "text/event-stream",
    answer: [
      { id: "s", result: { task: { status: { state: "TASK_STATE_SUBMITTED" } } } },
      { id: "s", result: { statusUpdate: { status: { state: "TASK_STATE_WORKING" } } } },
      { id: "s", result: { artifactUpdate: { artifact: artifacts[0] } } },
      { id: "s", result: { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } } },
    ],
  },
  {
    title: "JSON-RPC with the version in the query",
    line: "POST ?A2A-Version=1.0",
    headers: { "content-type": "application/json" },
    body: '{"jsonrpc":"2.0","id":0,"method":"GetTask","params":{"id":"none"}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 0, error: { code: -32001, data: [{ reason: "TASK_NOT_FOUND", domain: "a2a-protocol.org" }] } }],
  },
  {
    title: "a method of 1.0 without a version",
    line: "POST ",
    headers: { "content-type": "application/json" },
    body: '{"jsonrpc":"2.0","id":2,"method":"GetTask","params":{"id":"none"}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 2, error: { code: -32009, data: [{ reason: "VERSION_NOT_SUPPORTED" }] } }],
  },
  {
    title: "a version nobody speaks",
    line: "POST ",
    headers: { ...headers, "a2a-version": "99.0" },
    body: '{"jsonrpc":"2.0","id":3,"method":"SendMessage","params":{}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 3, error: { code: -32009 } }],
  },
  {
    title: "a method of 0.3 under 1.0",
    line: "POST ",
    headers,
    body: '{"jsonrpc":"2.0","id":4,"method":"message/send","params":{}}',
    status: 200,
    type: "application/json",
    answer: [{ id: 4, error: { code: -32601 } }],
  },
  {
    title: "HTTP+JSON send",
    line: "POST /rest/message:send",
    headers: { ...headers, "content-type": "application/a2a+json" },
    body: `{"message":${MESSAGE}}`,
    status: 200,
    type: "application/a2a+json",
    answer: [{ task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts } }],
  },
  {
    title: "HTTP+JSON below a tenant called v1",
    line: "GET /rest/v1/tasks/none",
    headers: { "a2a-version": "1.0" },
    status: 404,
    type: "application/a2a+json",
    answer: [{ error: { code: 404, status: "NOT_FOUND", details: [{ reason: "TASK_NOT_FOUND" }] } }],
  },
  {
    title: "a missing member",
    line: "POST /rest/message:send",
    headers,
    body: '{"message":{"role":"ROLE_USER","parts":[{"text":"hi"}]}}',
    status: 400,
    type: "application/a2a+json",
    answer: [
      {
        error: {
          status: "INVALID_ARGUMENT",
          details: [{ reason: "INVALID_PARAMS" }, { fieldViolations: [{ field: "message.messageId" }] }],
        },
      },
    ],
  },
];
