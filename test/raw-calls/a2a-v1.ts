import { expect } from "vitest";
import { callsWith, JSON_TYPE, type RawCall } from "./raw-call.ts";

const headers = { ...JSON_TYPE, "a2a-version": "1.0" };
const { http, rpc } = callsWith(headers, "application/a2a+json");
const MESSAGE = '{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}';
const artifacts = [{ artifactId: "echo", parts: [{ text: "hi" }] }];

export const A2A_V1: readonly RawCall[] = [
  rpc("JSON-RPC SendMessage", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${MESSAGE}}}`, {
    jsonrpc: "2.0",
    id: 1,
    result: { task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts } },
  }),
  http(
    "JSON-RPC SendStreamingMessage, with a trailing slash",
    "POST /",
    `{"jsonrpc":"2.0","id":"s","method":"SendStreamingMessage","params":{"message":${MESSAGE}}}`,
    [
      { id: "s", result: { task: { status: { state: "TASK_STATE_SUBMITTED" } } } },
      { id: "s", result: { statusUpdate: { status: { state: "TASK_STATE_WORKING" } } } },
      { id: "s", result: { artifactUpdate: { artifact: artifacts[0] } } },
      { id: "s", result: { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } } },
    ],
  ),
  http(
    "JSON-RPC with the version in the query",
    "POST ?A2A-Version=1.0",
    '{"jsonrpc":"2.0","id":0,"method":"GetTask","params":{"id":"none"}}',
    { id: 0, error: { code: -32001, data: [{ reason: "TASK_NOT_FOUND", domain: "a2a-protocol.org" }] } },
    { headers: JSON_TYPE, type: "application/json" },
  ),
  rpc(
    "a method of 1.0 without a version",
    '{"jsonrpc":"2.0","id":2,"method":"GetTask","params":{"id":"none"}}',
    { id: 2, error: { code: -32001, data: [{ reason: "TASK_NOT_FOUND" }] } },
    { headers: JSON_TYPE },
  ),
  rpc(
    "an unsupported version",
    '{"jsonrpc":"2.0","id":3,"method":"SendMessage","params":{}}',
    { id: 3, error: { code: -32009 } },
    { headers: { ...headers, "a2a-version": "99.0" } },
  ),
  rpc("a method of 0.3 under 1.0", '{"jsonrpc":"2.0","id":4,"method":"message/send","params":{}}', {
    id: 4,
    error: { code: -32601 },
  }),
  rpc("no JSON", '{"jsonrpc":"2.0",', { id: null, error: { code: -32700 } }),
  rpc("an envelope of JSON-RPC 1.0", '{"jsonrpc":"1.0","id":5,"method":"ListTasks","params":{}}', {
    id: 5,
    error: { code: -32600 },
  }),
  rpc("a request without an id", '{"jsonrpc":"2.0","method":"ListTasks","params":{}}', {
    id: null,
    result: { pageSize: 50 },
  }),
  rpc(
    "a number that a double cannot hold",
    '{"jsonrpc":"2.0","id":6,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"data":{"a":[1e400]}}]}}}',
    { id: 6, error: { code: -32602, message: "A number in a value must be finite." } },
  ),
  rpc(
    "a form, as curl -d sends it",
    '{"jsonrpc":"2.0","id":6,"method":"ListTasks","params":{}}',
    { id: 6, error: { code: -32005, message: expect.stringContaining("Content-Type: application/json") } },
    { headers: { ...headers, "content-type": "application/x-www-form-urlencoded" } },
  ),
  rpc(
    "a form that is not even JSON",
    "message=hi",
    { id: null, error: { code: -32005, message: expect.stringContaining("Content-Type: application/json") } },
    { headers: { ...headers, "content-type": "application/x-www-form-urlencoded" } },
  ),
  http(
    "HTTP+JSON a form",
    "POST /rest/message:send",
    `{"message":${MESSAGE}}`,
    { error: { message: expect.stringContaining("Content-Type: application/json") } },
    { status: 400, headers: { ...headers, "content-type": "application/x-www-form-urlencoded" } },
  ),
  http(
    "HTTP+JSON a number that a double cannot hold",
    "POST /rest/message:send",
    '{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}],"metadata":{"a":-1e999}}}',
    { error: { status: "INVALID_ARGUMENT", details: [{ reason: "INVALID_PARAMS" }] } },
    { status: 400 },
  ),
  http(
    "HTTP+JSON send",
    "POST /rest/message:send",
    `{"message":${MESSAGE}}`,
    { task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts } },
    { headers: { ...headers, "content-type": "application/a2a+json" } },
  ),
  http(
    "HTTP+JSON below a tenant called v1",
    "GET /rest/v1/tasks/none",
    undefined,
    { error: { code: 404, status: "NOT_FOUND", details: [{ reason: "TASK_NOT_FOUND" }] } },
    { status: 404 },
  ),
  http(
    "a missing member",
    "POST /rest/message:send",
    '{"message":{"role":"ROLE_USER","parts":[{"text":"hi"}]}}',
    {
      error: {
        status: "INVALID_ARGUMENT",
        details: [{ reason: "INVALID_PARAMS" }, { fieldViolations: [{ field: "message.messageId" }] }],
      },
    },
    { status: 400 },
  ),
];
