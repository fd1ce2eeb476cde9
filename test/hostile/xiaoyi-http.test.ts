/** Requests that mean no good, put to the place where Huawei's platform calls. */

import type { Arbitrary } from "fast-check";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { type DragomanServer, serve } from "../../src/index.ts";
import { usedMebibytes } from "../support/memory.ts";
import { untilMetric } from "../support/metrics.ts";
import { type RawReply, type RawRequest, sendRaw } from "../support/raw-http.ts";
import { AT_ONCE, inBatches } from "./batches.ts";
import { oddJson, oddKey, oddText } from "./odd-requests.ts";

const API_KEY = "a-key-of-the-platform";
const MINUTES = 180_000;
const GOOD = { authorization: API_KEY, "content-type": "application/json" };
const METHODS = ["message/stream", "tasks/cancel", "clearContext", "authorize", "deauthorize", "initialize"];

let server: DragomanServer;
beforeAll(async () => {
  server = await serve({
    agents: { echo: createEchoAgent() },
    port: 0,
    log: false,
    limits: { body: 64 * 1024 },
    xiaoyi: { http: [{ agent: "echo", apiKey: API_KEY }] },
  });
});
afterAll(() => server.close());

function send(raw: RawRequest): Promise<RawReply> {
  return sendRaw(`${server.url}/agents/echo`, { method: "POST", path: "/agent/message", ...raw });
}

const body = (method: unknown, more: object) => JSON.stringify({ jsonrpc: "2.0", id: "x", method, ...more });
const params = (more: object) => ({
  params: { id: "t", sessionId: "s", message: { role: "user", parts: [{ kind: "text", text: "a" }] }, ...more },
});

const wrong = fc.oneof(fc.integer(), fc.boolean(), fc.constant({}), fc.constant([]));
const wrongParts = fc.constantFrom<unknown>(
  ...["x", 5, { 0: "x" }, [], [{}], [null], ["x"], [[]], [{ kind: "text" }], [{ kind: "text", text: 1 }]],
  [{ kind: "file" }],
  [{ kind: "file", file: {} }],
  [{ kind: "file", file: "x" }],
  [{ kind: "file", file: { bytes: "not base64!" } }],
  [{ kind: "file", file: { uri: 5 } }],
  [{ text: "a", data: {} }],
);

/** What cannot be read as what it should be, even generously. */
const refused: Arbitrary<RawRequest> = fc.oneof(
  fc.string().map((text) => ({ headers: GOOD, body: text })),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => ({ headers: GOOD, body: bytes })),
  oddText.map((method) => ({ headers: GOOD, body: body(`${method} `, {}) })),
  fc.constantFrom("id", "sessionId", "message").map((name) => ({
    headers: GOOD,
    body: body("message/stream", params({ [name]: undefined })),
  })),
  fc.tuple(fc.constantFrom("id", "sessionId", "message"), wrong).map(([name, value]) => ({
    headers: GOOD,
    body: body("message/stream", params({ [name]: value })),
  })),
  wrongParts.map((parts) => ({ headers: GOOD, body: body("message/stream", params({ message: { parts } })) })),
  fc.constant({ headers: GOOD, body: body("message/stream", { params: [] }) }),
  fc.constant({ headers: GOOD, body: body("authorize", params({})) }),
  fc.constant({ headers: GOOD, body: body("message/stream", params({ id: "x".repeat(2_000) })) }),
  fc.constant({ headers: GOOD, body: "[".repeat(40_000) }),
  fc.constant({ headers: GOOD, body: " ".repeat(70_000) }),
  fc.constant({ headers: { ...GOOD, "content-encoding": "gzip" }, body: "{}" }),
  fc.constantFrom("GET", "PUT", "DELETE", "PATCH").map((method) => ({ method, headers: GOOD })),
  fc
    .constantFrom("/agent/message/x", "/agent/token", "/agent", "/agent/message%00")
    .map((path) => ({ path, headers: GOOD })),
);

const header = fc.string({ unit: fc.constantFrom(..."abcXYZ012.-_ ="), maxLength: 60 });

/** All that is right but for who says it. */
const unknown: Arbitrary<RawRequest> = fc
  .tuple(
    fc.constantFrom("authorization", "agent-session-id", "accesskey", "x-api-key"),
    header,
    fc.constantFrom(...METHODS),
  )
  .map(([name, value, method]) => ({
    headers: { "content-type": "application/json", [name]: value.trim() },
    body: body(method, { sessionId: "s", ...params({}) }),
  }));

/** Odd, but some of it can be answered. */
const odd: Arbitrary<RawRequest> = fc.oneof(
  fc.tuple(fc.constantFrom(...METHODS), fc.dictionary(oddKey, oddJson, { maxKeys: 4 })).map(([method, more]) => ({
    headers: GOOD,
    body: body(method, { ...more, jsonrpc: "2.0", method }),
  })),
  fc.tuple(oddText, oddText, oddText, oddJson).map(([id, sessionId, text, data]) => ({
    headers: GOOD,
    body: body(
      "message/stream",
      params({
        id: id || "t",
        sessionId: sessionId || "s",
        data,
        message: {
          parts: [
            { kind: "text", text },
            { kind: "data", data },
            { kind: "data", data: { variables: data, events: data } },
            { kind: "data", data: { cardsInfo: data, commands: data } },
          ],
        },
      }),
    ),
  })),
  fc.tuple(fc.constantFrom("tasks/cancel", "clearContext"), oddText, oddText).map(([method, sessionId, taskId]) => ({
    headers: GOOD,
    body: body(method, { sessionId, taskId }),
  })),
);

const SECRETS = /a-key-of-the-platform|node_modules|at .*\.ts:\d+/;

function expectSense(request: RawRequest, { body: answered, headers, status }: RawReply): void {
  const text = answered.toString();
  const about = `${request.method ?? "POST"} ${request.path ?? ""} ${String(request.body).slice(0, 200)} -> ${status} ${text.slice(0, 300)}`;
  expect(status, about).toBeLessThan(500);
  expect(text, about).not.toMatch(SECRETS);
  if (headers["content-type"] !== "text/event-stream") {
    expect(JSON.parse(text), about).toBeTypeOf("object");
    return;
  }
  const lines = text.split("\n").filter((line) => line.startsWith("data: "));
  const frames = lines.map((line) => JSON.parse(line.slice("data: ".length)));
  expect(
    frames.filter(({ result }) => result.final),
    about,
  ).toHaveLength(1);
  expect(frames.at(-1).result.final, about).toBe(true);
}

describe("hostile requests to the platform's place", () => {
  const tasks = async () => {
    const reply = await sendRaw(`${server.url}/agents/echo`, {
      path: "/rest/tasks",
      headers: { "a2a-version": "1.0" },
    });
    return reply.json.totalSize as number;
  };

  it("that must be refused are refused, and leave nothing behind", { timeout: MINUTES }, async () => {
    await inBatches(refused, 25, async (batch) => {
      await Promise.all(
        batch.map(async (request) => {
          const reply = await send(request);
          expectSense(request, reply);
          expect(reply.headers["content-type"], String(request.body).slice(0, 200)).toBe("application/json");
          const answer = reply.json;
          expect(answer, String(request.body).slice(0, 200)).toHaveProperty("error");
          expect(answer).not.toHaveProperty("result");
        }),
      );
    });
    expect(await tasks()).toBe(0);
  });

  it("of unknown callers are refused, whatever they know", { timeout: MINUTES }, async () => {
    await inBatches(unknown, 10, async (batch) => {
      const replies = await Promise.all(batch.map(send));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([401]));
    });
    expect(await tasks()).toBe(0);
  });

  it("that are merely odd get an answer that makes sense", { timeout: MINUTES }, async () => {
    await inBatches(odd, 25, (batch) =>
      Promise.all(batch.map(async (request) => expectSense(request, await send(request)))),
    );
    await untilMetric(server.url, "dragoman_streams_open", 0);
    await untilMetric(server.url, "dragoman_tasks_live", 0);
    expect(usedMebibytes()).toBeLessThan(400);
  });

  it("were many, and the platform is answered as before", async () => {
    expect(AT_ONCE).toBeGreaterThan(1);
    const reply = await send({ headers: GOOD, body: body("message/stream", params({ id: "last" })) });
    expect(reply.text).toContain('"text":"a"');
  });
});
