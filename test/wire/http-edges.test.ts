import { describe, expect, it } from "vitest";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { readMetric } from "../support/metrics.ts";
import { type RawRequest, sendRaw } from "../support/raw-http.ts";
import { exchangeBytes } from "../support/raw-socket.ts";
import { describeHttpBindings, useScene } from "../support/scene.ts";
import { userMessage } from "../support/wire-client.ts";

const V1 = { "a2a-version": "1.0" };
const [JSON_RPC] = HTTP_BINDINGS;

function errorOf(body: Buffer): { code: number; status: string; message: string } {
  return JSON.parse(body.toString("utf8")).error;
}

describe("paths and methods", () => {
  const scene = useScene(JSON_RPC);
  const ask = (method: string, path: string, more: RawRequest = {}) =>
    sendRaw(scene.server.url, { method, path, headers: V1, ...more });

  it.each([
    "/nowhere",
    "/agents/nobody",
    "/agents/",
    "/agents/nobody/rest/tasks",
    "/.well-known/other.json",
    "/restless",
  ])("%s is not found", async (path) => {
    for (const method of ["GET", "POST"]) {
      const { status, body, headers } = await ask(method, path);
      expect(status).toBe(404);
      expect(headers["content-type"]).toMatch(/json/);
      expect(errorOf(body)).toMatchObject({ code: 404, message: expect.any(String) });
    }
  });

  it.each(["/rest", "/rest/", "/rest/nothing", "/rest/tasks/1/2/3", "/rest/message:fly", "/rest//tasks//x"])(
    "[HTTP_JSON-URL-001] %s is nothing in HTTP+JSON",
    async (path) => {
      const { status, headers, body } = await ask("GET", path);
      expect(status).toBe(404);
      expect(headers["content-type"]).toBe("application/a2a+json");
      expect(errorOf(body).code).toBe(404);
    },
  );

  it.each([
    ["PUT", "/", "GET, HEAD, POST, OPTIONS"],
    ["DELETE", "/agents/stage", "GET, HEAD, POST, OPTIONS"],
    ["POST", "/.well-known/agent-card.json", "GET, HEAD, OPTIONS"],
    ["DELETE", "/healthz", "GET, HEAD, OPTIONS"],
    ["GET", "/rest/message:send", "POST"],
    ["GET", "/rest/message:stream", "POST"],
    ["DELETE", "/rest/tasks", "GET, HEAD"],
    ["PATCH", "/rest/tasks/1", "GET, HEAD"],
    ["GET", "/rest/tasks/1:cancel", "POST"],
    ["DELETE", "/rest/tasks/1:subscribe", "GET, HEAD, POST"],
    ["PUT", "/rest/tasks/1/pushNotificationConfigs", "GET, HEAD, POST"],
    ["POST", "/rest/tasks/1/pushNotificationConfigs/2", "GET, HEAD, DELETE"],
  ])("%s %s is not allowed, and the response lists what is", async (method, path, allow) => {
    const { status, headers, body } = await ask(method, path);
    expect(status).toBe(405);
    expect(headers.allow).toBe(allow);
    expect(errorOf(body)).toMatchObject({ code: 405, message: expect.any(String) });
  });

  it("answer HEAD like GET without a body", async () => {
    const { id } = await scene.client().task("artifact ok");
    for (const path of [`/rest/tasks/${id}`, "/rest/tasks", "/healthz", "/readyz", "/rest/tasks/unknown"]) {
      const [got, head] = [await ask("GET", path), await ask("HEAD", path)];
      expect(head.status, path).toBe(got.status);
      expect(head.headers["content-type"]).toBe(got.headers["content-type"]);
      expect(head.body.length).toBe(0);
    }
  });

  it("answer OPTIONS with what is allowed", async () => {
    for (const [path, allow] of [
      ["/", "GET, HEAD, POST, OPTIONS"],
      ["/.well-known/agent-card.json", "GET, HEAD, OPTIONS"],
      ["/rest/tasks", "GET, POST, DELETE, OPTIONS"],
    ] as const) {
      const { status, headers, body } = await ask("OPTIONS", path);
      expect(status, path).toBe(204);
      expect(headers.allow).toBe(allow);
      expect(body.length).toBe(0);
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  it("take colons that were percent-encoded, and a slash at the end", async () => {
    const body = JSON.stringify({ message: userMessage("artifact ok") });
    for (const path of ["/rest/message%3Asend", "/rest/message:send/", "/agents/stage/rest/message:send"]) {
      expect((await ask("POST", path, { body })).status, path).toBe(200);
    }
    const { id } = await scene.client().task("artifact ok");
    expect((await ask("GET", `/rest/tasks/${id}/`)).status).toBe(200);
  });

  it("may be absolute, as RFC 9112 §3.2.2 asks of every server", async () => {
    const { port } = scene.server;
    const asked = `GET http://127.0.0.1:${port}/healthz HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: close\r\n\r\n`;
    expect(await exchangeBytes(port, asked)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("tell that the server is alive and ready, and its numbers", async () => {
    expect((await ask("GET", "/healthz")).body.toString()).toBe('{"status":"ok"}');
    expect((await ask("GET", "/readyz")).body.toString()).toBe('{"status":"ready"}');
    const metrics = await ask("GET", "/metrics");
    expect(metrics.headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
    for (const line of metrics.text.trimEnd().split("\n")) {
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) dragoman_\w+ .+|dragoman_\w+(?:\{\w+="\w+"\})? [\d.e-]+)$/);
    }
  });
});

describeHttpBindings("bodies", { limits: { body: 20_000, parts: 10, depth: 12 } }, (scene, binding) => {
  /** JSON-RPC has numbers of its own; over HTTP+JSON the status is repeated. */
  const codeFor = (status: 413 | 415) => {
    if (binding.name !== "JSON-RPC") return status;
    return status === 413 ? -32600 : -32005;
  };
  const post = (body: string | Buffer, more: Partial<RawRequest> = {}) => {
    const raw = binding.http.request("SendMessage", {});
    return sendRaw(scene.server.url, { ...raw, ...more, headers: { ...raw.headers, ...more.headers }, body });
  };
  const wrap = (params: object) =>
    binding.name === "JSON-RPC"
      ? JSON.stringify({ jsonrpc: "2.0", id: "request-\u2713-1", method: "SendMessage", params })
      : JSON.stringify(params);
  const read = ({ status, headers, body }: Awaited<ReturnType<typeof post>>) =>
    binding.http.read(status, headers, body.toString("utf8"));
  const large = wrap({ message: userMessage(`artifact ${"x".repeat(30_000)}`) });

  it("that announce more than the limit are refused with 413", async () => {
    const { status, headers, body } = await post(large);
    expect(status).toBe(413);
    expect(headers.connection).toBe("close");
    expect(errorOf(body)).toMatchObject({ code: codeFor(413), message: expect.stringContaining("20000") });
  });

  it("that turn out to be more than the limit are refused with 413", async () => {
    const { status, body } = await post(large, { chunked: true });
    expect(status).toBe(413);
    expect(errorOf(body).code).toBe(codeFor(413));
  });

  it("that never end are refused as soon as the limit is passed", async () => {
    const path = binding.http.request("SendMessage", {}).path ?? "/";
    const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\ntransfer-encoding: chunked\r\n\r\n`;
    const chunk = `4e20\r\n${"x".repeat(20_000)}\r\n`;
    const answer = await exchangeBytes(scene.server.port, head + chunk + chunk);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("exactly at the limit are taken", async () => {
    const frame = wrap({ message: userMessage("artifact ") });
    const body = frame.replace("artifact ", `artifact ${"x".repeat(20_000 - Buffer.byteLength(frame))}`);
    expect(Buffer.byteLength(body)).toBe(20_000);
    expect(read(await post(body)).error).toBeUndefined();
    expect(read(await post(body, { chunked: true })).error).toBeUndefined();
  });

  it("that are compressed are refused with 415", async () => {
    for (const encoding of ["gzip", "br", "x-unknown"]) {
      const { status, body } = await post(wrap({}), { headers: { "content-encoding": encoding } });
      expect(status, encoding).toBe(415);
      expect(errorOf(body).code).toBe(codeFor(415));
    }
    for (const encoding of ["identity", "Identity", ""]) {
      const headers = { "content-encoding": encoding };
      const plain = await post(wrap({ message: userMessage("artifact ok") }), { headers });
      expect(plain.status, encoding).toBe(200);
    }
  });

  it("with too many parts are refused", async () => {
    const parts = (count: number) => Array.from({ length: count }, () => ({ text: "artifact ok" }));
    expect(read(await post(wrap({ message: userMessage(parts(10)) }))).error).toBeUndefined();
    expect(read(await post(wrap({ message: userMessage(parts(11)) }))).error?.reason).toBe("INVALID_PARAMS");
  });

  it("that are nested too deeply are refused", async () => {
    const nested = (levels: number) => `${"[".repeat(levels)}1${"]".repeat(levels)}`;
    const text = (levels: number) =>
      wrap({ message: userMessage([{ text: "artifact ok" }, { data: "DEEP" }]) }).replace('"DEEP"', nested(levels));
    expect(read(await post(text(6))).error).toBeUndefined();
    expect(read(await post(text(12))).error?.reason).toBe("INVALID_REQUEST");
    expect(read(await post(text(5_000))).error?.reason).toBe("INVALID_REQUEST");
  });

  it("cannot smuggle a prototype in", async () => {
    const message = wrap({ message: userMessage("artifact ok", { metadata: { kept: 1 } }) });
    for (const key of ['"__proto__"', '"\\u005f_proto__"']) {
      const body = message
        .replace('"kept":1', `${key}:{"polluted":true},"kept":1`)
        .replace('"parts":', `${key}:{"polluted":true},"parts":`);
      expect(body).toContain("polluted");
      const { result, error } = read(await post(body));
      expect(error).toBeUndefined();
      expect(JSON.stringify(result)).not.toContain("polluted");
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("cost nothing when they were refused", async () => {
    expect(await readMetric(scene.server.url, "dragoman_tasks_live")).toBe(0);
    expect(scene.stage.started.every((script) => script.startsWith("artifact"))).toBe(true);
  });
});

describe("browsers", () => {
  const closed = useScene(JSON_RPC);
  const open = useScene(JSON_RPC, { cors: { origins: ["https://app.example.com"] } });
  const anyone = useScene(JSON_RPC, { cors: { origins: ["*"] } });
  const list = '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}';
  const from = (origin: string) => ({ ...V1, "content-type": "application/json", origin });

  it("of other origins may not write unless they are allowed", async () => {
    const refused = await sendRaw(closed.server.url, { headers: from("https://evil.example.com"), body: list });
    expect(refused.status).toBe(403);
    expect(errorOf(refused.body)).toMatchObject({ code: 403, status: "PERMISSION_DENIED" });
    const rest = await sendRaw(open.server.url, {
      path: "/rest/message:send",
      headers: from("https://evil.example.com"),
      body: JSON.stringify({ message: userMessage("artifact evil") }),
    });
    expect(rest.status).toBe(403);
    expect(open.stage.started).toEqual([]);
    expect(rest.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("of the own origin may", async () => {
    const { port } = closed.server;
    const reply = await sendRaw(closed.server.url, { headers: from(`http://127.0.0.1:${port}`), body: list });
    expect(reply.status).toBe(200);
  });

  it("of allowed origins get the CORS headers", async () => {
    const reply = await sendRaw(open.server.url, { headers: from("https://app.example.com"), body: list });
    expect(reply.status).toBe(200);
    expect(reply.headers["access-control-allow-origin"]).toBe("https://app.example.com");
    expect(reply.headers.vary).toMatch(/Origin/);
    const any = await sendRaw(anyone.server.url, { headers: from("https://evil.example.com"), body: list });
    expect(any.headers["access-control-allow-origin"]).toBe("*");
  });

  it("of allowed origins may read streams", async () => {
    const stream = await open.client().stream("artifact ok", {}, { origin: "https://app.example.com" });
    expect(stream.headers["access-control-allow-origin"]).toBe("https://app.example.com");
    await stream.rest();
  });

  it("of allowed origins get a card that may be kept apart by version and origin", async () => {
    const path = "/.well-known/agent-card.json";
    const { headers } = await sendRaw(open.server.url, { path, headers: { origin: "https://app.example.com" } });
    expect(headers.vary).toMatch(/A2A-Version/);
    expect(headers.vary).toMatch(/Origin/);
  });

  it("ask first and get an answer", async () => {
    const preflight = (url: string, path: string, origin: string) =>
      sendRaw(url, { method: "OPTIONS", path, headers: { origin, "access-control-request-method": "POST" } });
    for (const path of ["/", "/rest/message:send", "/.well-known/agent-card.json"]) {
      const allowed = await preflight(open.server.url, path, "https://app.example.com");
      expect(allowed.status, path).toBe(204);
      expect(allowed.headers["access-control-allow-origin"]).toBe("https://app.example.com");
      expect(allowed.headers["access-control-allow-headers"]).toMatch(/a2a-version.*last-event-id/);
      expect(allowed.headers["access-control-allow-methods"]).toMatch(path.endsWith("json") ? /GET/ : /POST/);
      const foreign = await preflight(open.server.url, path, "https://evil.example.com");
      expect(foreign.status).toBe(204);
      expect(foreign.headers["access-control-allow-origin"]).toBeUndefined();
    }
  });
});
