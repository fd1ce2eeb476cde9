import { requests, runLoad } from "../client/load.ts";
import { type HttpRequest, message, rpc, uniqueId } from "../client/requests.ts";
import { comparison, type Entry } from "../scenario.ts";
import type { Target } from "../verdict.ts";

const connections = 64;
const text = "hello";
export const apiKey = "measured-key";
const xiaoyiOptions = { xiaoyi: { http: [{ agent: "echo", apiKey }] } };
const finalFrame = '"final":true';

interface DialectSend {
  /** The request of a connection. */
  request(index: number): HttpRequest;
  /** What a completed answer contains. */
  mark: string;
  /** Maximum CPU, as a multiple of bare. */
  atMost: number;
  options?: Entry["options"];
}

const userMessage = (kind: "kind" | "type") => ({
  messageId: uniqueId,
  role: "user",
  parts: [{ [kind]: "text", text }],
});

function xiaoyi(sessionId: string): HttpRequest {
  const params = { id: uniqueId, sessionId, message: { role: "user", parts: [{ kind: "text", text }] } };
  return { path: "/agent/message", ...rpc("message/stream", params, { Authorization: `Bearer ${apiKey}` }) };
}

export const dialectSends: Record<string, DialectSend> = {
  "1.0 JSON-RPC": { request: () => message(text), mark: "TASK_STATE_COMPLETED", atMost: 1.3 },
  "1.0 REST": {
    request: () => ({
      path: "/rest/message:send",
      headers: { "A2A-Version": "1.0" },
      body: { message: { messageId: uniqueId, role: "ROLE_USER", parts: [{ text }] } },
    }),
    mark: "TASK_STATE_COMPLETED",
    atMost: 1.6,
  },
  "0.3 JSON-RPC": {
    request: () => rpc("message/send", { message: { kind: "message", ...userMessage("kind") } }, {}),
    mark: '"completed"',
    atMost: 1.6,
  },
  "0.3 REST": {
    request: () => ({
      path: "/rest/v1/message:send",
      body: { request: { messageId: uniqueId, role: "ROLE_USER", content: [{ text }] } },
    }),
    mark: "TASK_STATE_COMPLETED",
    atMost: 1.6,
  },
  "0.1 JSON-RPC": {
    request: () => rpc("tasks/send", { id: uniqueId, message: userMessage("type") }, {}),
    mark: '"completed"',
    atMost: 1.6,
  },
  "tasks-rest": {
    request: () => ({ path: "/tasks/send", body: { message: userMessage("type") } }),
    mark: '"completed"',
    atMost: 1.6,
  },
  "Xiaoyi HTTP, a session per connection": {
    request: (index) => xiaoyi(`session-${index}`),
    mark: finalFrame,
    atMost: 3,
    options: xiaoyiOptions,
  },
  "Xiaoyi HTTP, one session": {
    request: () => xiaoyi("session"),
    mark: finalFrame,
    atMost: 3,
    options: xiaoyiOptions,
  },
};

const baseline: Entry = { label: "bare node:http", contestant: "bare", agent: "echo", store: "memory" };

const entries = Object.entries(dialectSends).map(
  ([label, { options }]): Entry => ({
    label,
    contestant: "dragoman",
    agent: "echo",
    store: "memory",
    ...(options && { options }),
  }),
);

export const dialects = comparison({
  name: "dialects",
  title: `blocking send in every dialect, tasks in memory, ${connections} connections`,
  setup:
    "The same echo agent called in each dialect. Bare node:http answers the send of 1.0 for all of them, also for Xiaoyi, " +
    "where an answer is always a stream (of four frames) and a caller needs a key.",
  targets: Object.entries(dialectSends).map(
    ([of, { atMost }]): Target => ({ measure: "cpuMicros", of, times: baseline.label, atMost }),
  ),
  entries: [baseline, ...entries],
  counts: { warmUp: 10_000, measured: 20_000, quick: 600 },
  load(contestant, _context, { label }) {
    const { request, mark } = dialectSends[label] ?? dialectSends["1.0 JSON-RPC"]!;
    return (count) => runLoad(contestant, { connections, count }, requests(request, mark));
  },
});
