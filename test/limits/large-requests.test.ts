/** Who may send much, and how much of it is waited for. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect as openSocket, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { defineAgent } from "../../src/agents/define.ts";
import { type DragomanServer, type ServeOptions, serve } from "../../src/server/serve.ts";
import { untilMetric } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";

const KEY = "alice-key-5f0c2b77d1";
const agent = defineAgent({ name: "Quiet", description: "Says little.", skills: [], run: async () => "done" });

let server: DragomanServer | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close();
  server = undefined;
});

async function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  const auth = { apiKeys: [{ key: KEY, owner: "alice" }] };
  server = await serve({ port: 0, log: false, agents: { quiet: agent }, times: { drainMs: 0 }, auth, ...options });
  return server;
}

const PLACES = ["/", "/agents/quiet", "/rest/message:send", "/rest/v1/message:send", "/tasks/send"];

/** Sends the head of a request and some of its body; what comes back up to the end of its head. */
function begin(port: number, path: string, headers: readonly string[], some: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = openSocket(port, "127.0.0.1");
    sockets.push(socket);
    const lines = [`POST ${path} HTTP/1.1`, "host: 127.0.0.1", "content-type: application/json", ...headers];
    socket.write(`${lines.join("\r\n")}\r\n\r\n${some}`);
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
      if (answer.includes("\r\n\r\n")) resolve(answer);
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(answer));
  });
}

function sendMessage(text: string) {
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text }] };
  return { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } };
}

describe("a request", () => {
  it.each([
    ["two hosts", ["host: other.example"]],
    ["two callers", [`authorization: Bearer ${KEY}`, "authorization: Bearer other"]],
    ["one caller twice", [`authorization: Bearer ${KEY}`, `Authorization: Bearer ${KEY}`]],
  ])("that names %s is refused", async (_, headers) => {
    const { port } = await start();
    expect(await begin(port, "/", ["content-length: 2", ...headers], "{}")).toMatch(/^HTTP\/1\.1 400 /);
    const waiting = ["content-length: 2", "expect: 100-continue", ...headers];
    expect(await begin(port, "/", waiting, "")).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("may have commas in what shows who calls", async () => {
    const { port } = await start({
      authenticate: ({ headers }) => ({ owner: headers.authorization ?? "", authenticated: true }),
    });
    const headers = ["a2a-version: 1.0", "content-length: 2", 'authorization: Digest realm="a", nonce="b"'];
    expect(await begin(port, "/", headers, "{}")).toContain(`"jsonrpc"`);
  });

  it("is read once its caller has been told to send it", async () => {
    const { port } = await start();
    const body = JSON.stringify(sendMessage("hello"));
    const socket = openSocket(port, "127.0.0.1");
    sockets.push(socket);
    const lines = ["POST / HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", "a2a-version: 1.0"];
    const more = [`x-api-key: ${KEY}`, `content-length: ${body.length}`, "expect: 100-continue", "connection: close"];
    socket.write(`${[...lines, ...more].join("\r\n")}\r\n\r\n`);
    const [first] = (await once(socket, "data")) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 100 /);
    socket.write(body);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("a large request of someone who is not let in", () => {
  it.each(PLACES)("is refused by its head: %s", async (path) => {
    const { port } = await start();
    const answer = await begin(port, path, ["content-length: 10000000"], "{");
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toMatch(/\r\nwww-authenticate: /i);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  });

  it.each(PLACES)("is refused by its head where the caller waits to hear whether it is wanted: %s", async (path) => {
    const { port } = await start();
    const waiting = ["content-length: 20", "expect: 100-continue"];
    expect(await begin(port, path, waiting, "")).toMatch(/^HTTP\/1\.1 401 /);
    const wanted = await begin(port, path, [...waiting, `x-api-key: ${KEY}`], "");
    expect(wanted).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    const tooLarge = ["content-length: 99999999999", "expect: 100-continue", `x-api-key: ${KEY}`];
    expect(await begin(port, path, tooLarge, "")).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("is refused as soon as it turns out to be large", async () => {
    const { port } = await start();
    const chunk = `8000\r\n${"x".repeat(0x8000)}\r\n`;
    const answer = await begin(port, "/", ["transfer-encoding: chunked"], chunk.repeat(3));
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  });

  it("is refused over gRPC before its message is there", async () => {
    const { grpc } = await start();
    const session = connectHttp2(`http://${grpc}`);
    const stream = session.request({
      ":method": "POST",
      ":path": "/lf.a2a.v1.A2AService/SendMessage",
      "content-type": "application/grpc",
      te: "trailers",
    });
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(10_000_000, 1);
    stream.write(Buffer.concat([prefix, Buffer.alloc(100_000)]));
    const [headers] = (await once(stream, "response")) as [Record<string, string>];
    expect(headers["grpc-status"]).toBe("16");
    session.destroy();
  });
});

describe("a large request of someone who is let in", () => {
  it("is read to its end", async () => {
    const { url } = await start();
    const body = JSON.stringify(sendMessage("x".repeat(1_000_000)));
    const headers = { "a2a-version": "1.0", "content-type": "application/json", "x-api-key": KEY };
    const reply = await sendRaw(url, { method: "POST", path: "/", headers, body });
    expect(JSON.parse(reply.body.toString())).toMatchObject({
      id: 1,
      result: { message: { parts: [{ text: "done" }] } },
    });
  });

  it("waits its turn while others are on their way", async () => {
    const { port, url } = await start({ limits: { arriving: 300_000 } });
    const key = `x-api-key: ${KEY}`;
    const held = begin(port, "/", [key, "content-length: 1000000"], "x".repeat(200_000));
    const body = JSON.stringify(sendMessage("x".repeat(250_000)));
    const headers = { "a2a-version": "1.0", "content-type": "application/json", "x-api-key": KEY };
    const ask = () => sendRaw(url, { method: "POST", path: "/", headers, body });
    let reply = await ask();
    // What was begun may not have come as far as that yet.
    while (reply.status === 200) reply = await ask();
    expect([reply.status, reply.headers["retry-after"]]).toEqual([429, "1"]);
    for (const socket of sockets) socket.destroy();
    await held;
    while (reply.status === 429) reply = await ask();
    expect(reply.status).toBe(200);
  });
});

describe("callers without credentials", () => {
  const ARRIVING = "dragoman_arriving_bytes";
  const head = (key: string | undefined, length: number) => [
    "a2a-version: 1.0",
    `content-length: ${length}`,
    "connection: close",
    ...(key === undefined ? [] : [`x-api-key: ${key}`]),
  ];
  /** Short, without telling so beforehand. */
  const sendChunked = (port: number, key: string | undefined) => {
    const body = JSON.stringify(sendMessage("x".repeat(40_000)));
    const [version, , ...more] = head(key, 0);
    const headers = [version as string, "transfer-encoding: chunked", ...more];
    return begin(port, "/", headers, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  };

  it.each([
    ["that are refused anyway", false, /^HTTP\/1\.1 401 /],
    ["that may be anonymous", true, /^HTTP\/1\.1 429 /],
  ])("have a share of what is on its way, and leave the rest to others: %s", async (_, anonymous, refusal) => {
    const auth = { apiKeys: [{ key: KEY, owner: "alice" }], anonymous };
    const { port, url } = await start({ auth, limits: { arriving: 400_000 } });
    const held = [1, 2].map(() => begin(port, "/", head(undefined, 60_000), "x".repeat(45_000)));
    await untilMetric(url, ARRIVING, 90_000);
    expect(await sendChunked(port, undefined)).toMatch(refusal);
    expect(await sendChunked(port, KEY)).toMatch(/^HTTP\/1\.1 200 /);
    const large = JSON.stringify(sendMessage("x".repeat(250_000)));
    expect(await begin(port, "/", head(KEY, large.length), large)).toMatch(/^HTTP\/1\.1 200 /);
    for (const socket of sockets) socket.destroy();
    await Promise.all(held);
    await untilMetric(url, ARRIVING, 0);
  });

  it("have all of it where there are none to show", async () => {
    const { port, url } = await start({ auth: {}, limits: { arriving: 400_000 } });
    const large = JSON.stringify(sendMessage("x".repeat(390_000)));
    expect(await begin(port, "/", head(undefined, large.length), large)).toMatch(/^HTTP\/1\.1 200 /);
    await untilMetric(url, ARRIVING, 0);
  });
});

describe("a request of very many values", () => {
  const data = [{ data: Array.from({ length: 60 }, () => ({})) }];
  const v1 = { message: { messageId: "m", role: "ROLE_USER", parts: data } };
  const headers = { "a2a-version": "1.0", "content-type": "application/json", "x-api-key": KEY };

  it("is refused in the words of its dialect", async () => {
    const { url } = await start({ limits: { values: 100 } });
    const ask = (path: string, body: unknown) =>
      sendRaw(url, { method: "POST", path, headers, body: JSON.stringify(body) });
    const rpc = await ask("/", { ...sendMessage(""), params: v1 });
    expect(JSON.parse(rpc.body.toString())).toMatchObject({
      error: { code: -32600, message: expect.stringContaining("100 values") },
    });
    const rest = await ask("/rest/message:send", v1);
    expect([rest.status, rest.body.toString()]).toEqual([400, expect.stringContaining("100 values")]);
    const early = await ask("/tasks/send", {
      message: { role: "user", parts: [{ type: "data", data: { many: data } }] },
    });
    expect([early.status, early.body.toString()]).toEqual([400, expect.stringContaining("100 values")]);
  });
});
