/**
 * Literals that others rely on, written out once more. A red line here asks one question: did you mean to? If so, it
 * belongs into the changelog.
 */

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as client from "../src/client.ts";
import { CLI_ERROR_EXITS, EXIT, toFailure } from "../src/core/cli/errors.ts";
import { CONNECTION_ERROR_CODES, ConnectionError } from "../src/core/client/errors.ts";
import { METHODS } from "../src/core/dialects/a2a-v1/decode.ts";
import { ERRORS } from "../src/core/dialects/a2a-v1/errors.ts";
import { matchRoute } from "../src/core/dialects/a2a-v1/http-routes.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMES } from "../src/core/engine/options.ts";
import type { AgentCard } from "../src/core/model/card.ts";
import { ERROR_CODES } from "../src/core/model/errors.ts";
import { EXTENSIONS } from "../src/core/model/extensions.ts";
import { NO_METER, SILENT_LOG } from "../src/core/model/ports.ts";
import { TASK_STATES, type Task } from "../src/core/model/task.ts";
import { systemTools } from "../src/core/server/clock-and-ids.ts";
import { builtinAgents } from "../src/core/server/config/agent-kinds.ts";
import { createDialects } from "../src/core/server/dialects.ts";
import { createCors } from "../src/core/server/http/cors.ts";
import { DEFAULT_SERVE_LIMITS, DEFAULT_SERVE_TIMES } from "../src/core/server/options.ts";
import * as express from "../src/express.ts";
import { XIAOYI_EXTENSION } from "../src/features/xiaoyi/codec/metadata.ts";
import * as xiaoyi from "../src/features/xiaoyi/index.ts";
import * as main from "../src/index.ts";
import { createHandler, type WebHandler } from "../src/index.ts";
import { BUILTIN_AGENTS } from "./support/builtin-agents.ts";

const DIALECTS = createDialects({ ...systemTools, log: SILENT_LOG, meter: NO_METER }, { agents: {} });
const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

describe("the package", () => {
  it("has these doors", () => {
    expect(manifest.name).toBe("dragoman");
    expect(manifest.type).toBe("module");
    expect(manifest.license).toBe("Apache-2.0");
    expect(manifest.engines).toEqual({ node: ">=20.19" });
    expect(manifest.bin).toEqual({ dragoman: "dist/cli/main.js" });
    expect(manifest.exports).toEqual({
      ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
      "./client": { types: "./dist/client.d.ts", default: "./dist/client.js" },
      "./express": { types: "./dist/express.d.ts", default: "./dist/express.js" },
      "./xiaoyi": { types: "./dist/xiaoyi.d.ts", default: "./dist/xiaoyi.js" },
      "./package.json": "./package.json",
    });
  });

  it("runs nothing when it is installed", () => {
    const hooks = ["preinstall", "install", "postinstall", "prepare", "prepublish"];
    expect(Object.keys(manifest.scripts).filter((name) => hooks.includes(name))).toEqual([]);
  });

  it("exports these values", () => {
    expect(Object.keys(main).sort()).toEqual([
      "GuardedFetchError",
      "ProtocolError",
      "SILENT_LOG",
      "bytesOf",
      "createGuardedFetch",
      "createHandler",
      "createWorkflowAgent",
      "data",
      "defineAgent",
      "exec",
      "file",
      "llm",
      "loadWorkflow",
      "readProgress",
      "remote",
      "serve",
      "text",
      "textOf",
      "workflow",
    ]);
    expect(Object.keys(client).sort()).toEqual([
      "ConnectionError",
      "ProtocolError",
      "RegistryError",
      "bytesOf",
      "connect",
      "createRegistryClient",
      "data",
      "fetchCard",
      "file",
      "text",
      "textOf",
    ]);
    expect(Object.keys(express)).toEqual(["dragoman"]);
    expect(Object.keys(xiaoyi)).toEqual(["xiaoyi"]);
  });

  it("has these built-in agents and dialects", () => {
    expect([...builtinAgents().keys()]).toEqual(["echo", "outline", "document", "summary", "tck"]);
    expect(DIALECTS.map(({ name }) => name)).toEqual([
      "a2a-v1",
      "a2a-v03",
      "a2a-v01",
      "tasks-rest",
      "xiaoyi-http",
      "xiaoyi-link",
      "a2a-lite",
    ]);
  });
});

describe("names on the wire", () => {
  it("methods", () => {
    expect(METHODS).toEqual({
      SendMessage: "send",
      SendStreamingMessage: "stream",
      GetTask: "get",
      ListTasks: "list",
      CancelTask: "cancel",
      SubscribeToTask: "subscribe",
      CreateTaskPushNotificationConfig: "push-create",
      GetTaskPushNotificationConfig: "push-get",
      ListTaskPushNotificationConfigs: "push-list",
      DeleteTaskPushNotificationConfig: "push-delete",
      GetExtendedAgentCard: "extended-card",
    });
  });

  it.each([
    ["/message:send", { POST: "send" }],
    ["/message:stream", { POST: "stream" }],
    ["/tasks", { GET: "list" }],
    ["/tasks/t", { GET: "get" }],
    ["/tasks/t:cancel", { POST: "cancel" }],
    ["/tasks/t:subscribe", { GET: "subscribe", POST: "subscribe" }],
    ["/tasks/t/pushNotificationConfigs", { GET: "push-list", POST: "push-create" }],
    ["/tasks/t/pushNotificationConfigs/p", { GET: "push-get", DELETE: "push-delete" }],
    ["/extendedAgentCard", { GET: "extended-card" }],
  ])("path %s", (path, methods) => {
    expect(matchRoute(path)?.methods).toEqual(methods);
    expect(matchRoute(`/tenant${path}`)?.methods).toEqual(methods);
  });

  it("states", () => {
    expect(TASK_STATES).toEqual([
      "TASK_STATE_SUBMITTED",
      "TASK_STATE_WORKING",
      "TASK_STATE_COMPLETED",
      "TASK_STATE_FAILED",
      "TASK_STATE_CANCELED",
      "TASK_STATE_INPUT_REQUIRED",
      "TASK_STATE_REJECTED",
      "TASK_STATE_AUTH_REQUIRED",
    ]);
  });

  it("extensions", () => {
    expect({ ...EXTENSIONS, xiaoyi: XIAOYI_EXTENSION }).toEqual({
      replay: "urn:dragoman:ext:replay:v1",
      idempotency: "urn:dragoman:ext:idempotency:v1",
      hops: "urn:dragoman:ext:hops:v1",
      reasoning: "urn:dragoman:ext:reasoning:v1",
      workflow: "urn:dragoman:ext:workflow:v1",
      upstream: "urn:dragoman:ext:upstream:v1",
      usage: "urn:dragoman:ext:usage:v1",
      unverified: "urn:dragoman:ext:unverified:v1",
      xiaoyi: "urn:dragoman:ext:xiaoyi:v1",
    });
  });

  it("the dialect's version, bindings and paths", () => {
    const [{ serving }] = DIALECTS;
    expect(serving.cards?.map(({ path, version }) => [path, version])).toEqual([
      ["/.well-known/agent-card.json", "1.0"],
    ]);
    expect(serving.http?.map(({ prefix }) => prefix)).toEqual(["rest"]);
    expect(serving.rpc?.service).toBe("lf.a2a.v1.A2AService");
    const place = { base: "https://a.example/agents/x", rpc: "a.example:4001", name: "x", isDefault: false };
    expect(serving.interfaces?.(place)).toEqual([
      { url: "https://a.example/agents/x", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: "https://a.example/agents/x/rest", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: "a.example:4001", protocolBinding: "GRPC", protocolVersion: "1.0", tenant: "x" },
    ]);
  });

  it("headers that browsers may send and read", () => {
    const headers = createCors({ origins: ["*"] }).preflight("https://page.example", "POST");
    expect(headers["access-control-allow-headers"]?.split(", ")).toEqual([
      "content-type",
      "accept",
      "authorization",
      "x-api-key",
      "a2a-version",
      "a2a-extensions",
      "x-a2a-extensions",
      "idempotency-key",
      "last-event-id",
    ]);
    expect(headers["access-control-expose-headers"]?.split(", ")).toEqual([
      "a2a-extensions",
      "x-a2a-extensions",
      "etag",
      "retry-after",
      "www-authenticate",
    ]);
  });
});

describe("errors", () => {
  /** Code, JSON-RPC number, HTTP status, status word; the reason on the wire is the code itself. */
  const table = [
    ["TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"],
    ["TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION"],
    ["PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, "FAILED_PRECONDITION"],
    ["UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION"],
    ["CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, "INVALID_ARGUMENT"],
    ["INVALID_AGENT_RESPONSE", -32006, 500, "INTERNAL"],
    ["EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400, "FAILED_PRECONDITION"],
    ["EXTENSION_SUPPORT_REQUIRED", -32008, 400, "FAILED_PRECONDITION"],
    ["VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION"],
    ["PARSE_ERROR", -32700, 400, "INVALID_ARGUMENT"],
    ["INVALID_REQUEST", -32600, 400, "INVALID_ARGUMENT"],
    ["METHOD_NOT_FOUND", -32601, 404, "UNIMPLEMENTED"],
    ["INVALID_PARAMS", -32602, 400, "INVALID_ARGUMENT"],
    ["INTERNAL_ERROR", -32603, 500, "INTERNAL"],
    ["UNAUTHENTICATED", -32050, 401, "UNAUTHENTICATED"],
    ["PERMISSION_DENIED", -32051, 403, "PERMISSION_DENIED"],
    ["RESOURCE_EXHAUSTED", -32052, 429, "RESOURCE_EXHAUSTED"],
    ["UNAVAILABLE", -32053, 503, "UNAVAILABLE"],
    ["IDEMPOTENCY_CONFLICT", -32054, 409, "ALREADY_EXISTS"],
    ["LOSS_REFUSED", -32055, 422, "FAILED_PRECONDITION"],
  ] as const;

  it("are these and no others", () => {
    expect([...ERROR_CODES]).toEqual(table.map(([code]) => code));
  });

  it.each(table)("%s is %d, %d, %s", (code, jsonRpc, http, grpcStatus) => {
    expect(ERRORS[code]).toEqual({ jsonRpc, http, grpcStatus });
  });
});

describe("the command line", () => {
  it("ends with these codes", () => {
    expect(EXIT).toEqual({
      done: 0,
      failure: 1,
      usage: 2,
      unreachable: 3,
      authentication: 4,
      timeout: 5,
      stalled: 70,
      interrupted: 130,
    });
    expect(CLI_ERROR_EXITS).toEqual({
      A2ACLI_ERR_USAGE: 2,
      A2ACLI_ERR_CARD_NOT_FOUND: 3,
      A2ACLI_ERR_CARD_INVALID: 1,
      A2ACLI_ERR_UNREACHABLE: 3,
      A2ACLI_ERR_CREDENTIALS_MISSING: 4,
      A2ACLI_ERR_AUTH_FAILED: 4,
      A2ACLI_ERR_TIMEOUT: 5,
      A2ACLI_ERR_INTERNAL: 1,
    });
    const exits = CONNECTION_ERROR_CODES.map((code) => [code, toFailure(new ConnectionError(code, "x")).exit]);
    expect(Object.fromEntries(exits)).toEqual({
      unreachable: 3,
      timeout: 5,
      aborted: 130,
      "bad-card": 1,
      "no-interface": 1,
      "broken-stream": 3,
    });
  });
});

describe("defaults", () => {
  it("limits", () => {
    expect(DEFAULT_SERVE_LIMITS).toEqual({
      body: 16_777_216,
      parts: 1_000,
      depth: 64,
      values: 200_000,
      arriving: 512 * 1024 * 1024,
      failedLogins: 300,
      unsent: 512 * 1024 * 1024,
      unsentPerOwner: 128 * 1024 * 1024,
      requestsPerAddress: 20_000,
      requestsPerOwner: 20_000,
      connections: 50_000,
      connectionsPerAddress: 30_000,
      resetsPerAddress: 50,
      headers: 16_384,
      headersTimeout: 20_000,
      requestTimeout: 300_000,
    });
    expect(DEFAULT_LIMITS).toEqual({
      historyPage: 200,
      page: 16_777_216,
      tasksPerOwner: 10_000,
      messageBytesPerOwner: 268_435_456,
      streamsPerOwner: 20_000,
      streamsPerAddress: 20_000,
      storedBytesPerOwner: undefined,
      hops: 8,
      id: 1_024,
      part: 16_777_216,
      file: 16_777_216,
      mediaTypes: undefined,
      task: 268_435_456,
      queue: 10_000,
      mergeAfter: 64,
      pendingEvents: 256,
      attempts: 5,
      pushConfigs: 20,
      pushAttempts: 12,
      pushConcurrency: 128,
      pushPerHost: 16,
    });
  });

  it("times", () => {
    expect(DEFAULT_SERVE_TIMES).toEqual({ keepAliveMs: 15_000, stalledReaderMs: 60_000, drainMs: 10_000 });
    expect(DEFAULT_TIMES).toEqual({
      cancelGraceMs: 5_000,
      leaseMs: 15_000,
      sweepMs: 1_000,
      showTaskAfterMs: 1_000,
      idempotencyMs: 86_400_000,
      compactAfterMs: 86_400_000,
      pruneAfterMs: undefined,
      housekeepingMs: 60_000,
      pushTimeoutMs: 10_000,
      pushRetryMs: 5_000,
      longestPushRetryMs: 3_600_000,
      pushSweepMs: 5_000,
    });
  });
});

describe("a served agent", () => {
  let handler: WebHandler;
  const ask = (path: string, init?: RequestInit) => handler(new Request(`https://agents.example${path}`, init));
  const send = (headers: Record<string, string>, text: string, messageId = "m-1") =>
    ask("/agents/echo/rest/message:send", {
      method: "POST",
      headers: { "content-type": "application/a2a+json", "A2A-Version": "1.0", ...headers },
      body: JSON.stringify({ message: { messageId, role: "ROLE_USER", parts: [{ text }] } }),
    });

  const taskOf = async (answer: Response) => ((await answer.json()) as { task: Task }).task.id;
  const refusalOf = async (answer: Response) => {
    const { error } = (await answer.json()) as { error: { details: { reason: string }[] } };
    return [answer.status, error.details[0]?.reason];
  };

  beforeAll(async () => {
    handler = await createHandler({ agents: { echo: BUILTIN_AGENTS.echo() }, publicUrl: "https://agents.example" });
  });
  afterAll(() => handler.close());

  it("shows its card at both of its addresses", async () => {
    const own = await ask("/agents/echo/.well-known/agent-card.json");
    const root = await ask("/.well-known/agent-card.json");
    expect([own.status, root.status]).toEqual([200, 200]);
    expect(own.headers.get("content-type")).toBe("application/json");
    expect(own.headers.get("cache-control")).toBe("public, max-age=60");
    expect(own.headers.get("vary")).toBe("A2A-Version");
    const card = (await own.json()) as AgentCard;
    expect(await root.json()).toEqual(card);
    expect(card.capabilities.extensions?.map(({ uri }) => uri)).toEqual([
      "urn:dragoman:ext:replay:v1",
      "urn:dragoman:ext:idempotency:v1",
      "urn:dragoman:ext:hops:v1",
    ]);
    expect(card.capabilities).toMatchObject({ streaming: true, pushNotifications: true, extendedAgentCard: false });
  });

  it("needs no A2A-Version at its own paths, knows no other one, and answers A2A-Extensions", async () => {
    expect((await send({ "A2A-Version": "" }, "hello")).status).toBe(200);
    expect(await refusalOf(await send({ "A2A-Version": "2.0" }, "hello"))).toEqual([400, "VERSION_NOT_SUPPORTED"]);
    const answer = await send({ "A2A-Extensions": "urn:dragoman:ext:replay:v1, urn:other" }, "hello");
    expect(answer.headers.get("a2a-extensions")).toBe("urn:dragoman:ext:replay:v1");
    expect(answer.headers.get("content-type")).toBe("application/a2a+json");
  });

  it("knows a repeated send by Idempotency-Key", async () => {
    const key = { "Idempotency-Key": "k-1" };
    const first = await taskOf(await send(key, "hello"));
    expect(await taskOf(await send(key, "hello"))).toBe(first);
    expect(await refusalOf(await send(key, "something else"))).toEqual([409, "IDEMPOTENCY_CONFLICT"]);
  });

  it("knows a repeated send by messageId where that was asked for", async () => {
    const asked = { "A2A-Extensions": "urn:dragoman:ext:idempotency:v1" };
    const first = await taskOf(await send(asked, "hello", "m-2"));
    expect(await taskOf(await send(asked, "hello", "m-2"))).toBe(first);
    expect(await taskOf(await send({}, "hello", "m-2"))).not.toBe(first);
  });

  it("replays after Last-Event-ID", async () => {
    const id = await taskOf(await send({}, "hello", "m-3"));
    const follow = async (extra: Record<string, string>) => {
      const path = `/agents/echo/rest/tasks/${id}:subscribe`;
      const answer = await ask(path, { headers: { "A2A-Version": "1.0", "Last-Event-ID": "2", ...extra } });
      expect(answer.headers.get("content-type")).toBe("text/event-stream");
      return [...(await answer.text()).matchAll(/^id: ?(.*)$/gm)].map(([, number]) => number);
    };
    expect(await follow({})).toEqual(["2", "3", "4"]);
    expect(await follow({ "A2A-Extensions": "urn:dragoman:ext:replay:v1" })).toEqual(["3", "4"]);
  });

  it.each(["/healthz", "/readyz", "/metrics"])("answers at %s", async (path) => {
    expect((await ask(path)).status).toBe(200);
  });
});
