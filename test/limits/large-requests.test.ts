/** Who may send much, and how much of it is waited for. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { readMetric, untilMetric } from "../support/metrics.ts";
import { A2A_V1, callRpc, rpcBody, sendRaw } from "../support/raw-http.ts";
import { beginRequest } from "../support/raw-socket.ts";
import { userMessage } from "../support/wire-client.ts";

const KEY = "alice-key-5f0c2b77d1";
const agent = defineAgent({ name: "Quiet", description: "Says little.", skills: [], run: async () => "done" });

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return startServer({ agents: { quiet: agent }, auth: { apiKeys: [{ key: KEY, owner: "alice" }] }, ...options });
}

const PLACES = ["/", "/agents/quiet", "/rest/message:send", "/rest/v1/message:send", "/tasks/send"];

const begin = (...request: Parameters<typeof beginRequest>) => beginRequest(...request).answer;

const SHOWN = { "x-api-key": KEY };
const sendMessage = (text: string) => ({ message: userMessage(text) });
const sendBody = (text: string) => rpcBody("SendMessage", sendMessage(text));

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

  it("is read after its caller was asked to send it", async () => {
    const { port } = await start();
    const body = sendBody("hello");
    const headers = ["a2a-version: 1.0", `x-api-key: ${KEY}`, `content-length: ${body.length}`];
    const { socket } = beginRequest(port, "/", [...headers, "expect: 100-continue", "connection: close"], "");
    const [first] = (await once(socket, "data")) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 100 /);
    socket.write(body);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("a large request of an unauthorised caller", () => {
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

describe("a large request of an authorised caller", () => {
  it("is read to its end", async () => {
    const { url } = await start();
    const reply = await callRpc(url, "SendMessage", sendMessage("x".repeat(1_000_000)), SHOWN);
    expect(reply.json).toMatchObject({ id: 1, result: { message: { parts: [{ text: "done" }] } } });
  });

  it("waits its turn while others are on their way", async () => {
    const { port, url } = await start({ limits: { arriving: 300_000 } });
    const key = `x-api-key: ${KEY}`;
    const held = beginRequest(port, "/", [key, "content-length: 1000000"], "x".repeat(200_000));
    const ask = () => callRpc(url, "SendMessage", sendMessage("x".repeat(250_000)), SHOWN);
    let reply = await ask();
    // What was begun may not have come as far as that yet.
    while (reply.status === 200) reply = await ask();
    expect([reply.status, reply.headers["retry-after"]]).toEqual([429, "1"]);
    held.socket.destroy();
    await held.answer;
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
    const body = sendBody("x".repeat(40_000));
    const [version, , ...more] = head(key, 0);
    const headers = [version as string, "transfer-encoding: chunked", ...more];
    return begin(port, "/", headers, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  };

  it("have nothing of theirs buffered where they are refused", async () => {
    const { port, url } = await start();
    const held = beginRequest(port, "/", head(undefined, 60_000), "x".repeat(45_000));
    expect(await held.answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(await sendChunked(port, undefined)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await readMetric(url, ARRIVING)).toBe(0);
  });

  it("have a share of what is on its way where they may be anonymous, and leave the rest to others", async () => {
    const auth = { apiKeys: [{ key: KEY, owner: "alice" }], anonymous: true };
    const { port, url } = await start({ auth, limits: { arriving: 400_000 } });
    const held = [1, 2].map(() => beginRequest(port, "/", head(undefined, 60_000), "x".repeat(45_000)));
    await expect.poll(() => readMetric(url, ARRIVING)).toBeGreaterThanOrEqual(90_000);
    expect(await sendChunked(port, undefined)).toMatch(/^HTTP\/1\.1 429 /);
    expect(await sendChunked(port, KEY)).toMatch(/^HTTP\/1\.1 200 /);
    const large = sendBody("x".repeat(250_000));
    expect(await begin(port, "/", head(KEY, large.length), large)).toMatch(/^HTTP\/1\.1 200 /);
    for (const { socket } of held) socket.destroy();
    await Promise.all(held.map(({ answer }) => answer));
    await untilMetric(url, ARRIVING, 0);
  });

  it("have all of it where there are none to show", async () => {
    const { port, url } = await start({ auth: {}, limits: { arriving: 400_000 } });
    const large = sendBody("x".repeat(390_000));
    expect(await begin(port, "/", head(undefined, large.length), large)).toMatch(/^HTTP\/1\.1 200 /);
    await untilMetric(url, ARRIVING, 0);
  });
});

describe("a request of very many values", () => {
  const data = [{ data: Array.from({ length: 60 }, () => ({})) }];
  const v1 = { message: userMessage(data) };

  it("is refused with an error of its dialect", async () => {
    const { url } = await start({ limits: { values: 100 } });
    const ask = (path: string, body: unknown) =>
      sendRaw(url, { method: "POST", path, headers: { ...A2A_V1, ...SHOWN }, body: JSON.stringify(body) });
    const rpc = await callRpc(url, "SendMessage", v1, SHOWN);
    expect(rpc.json).toMatchObject({
      error: { code: -32600, message: expect.stringContaining("100 values") },
    });
    const rest = await ask("/rest/message:send", v1);
    expect([rest.status, rest.text]).toEqual([400, expect.stringContaining("100 values")]);
    const early = await ask("/tasks/send", {
      message: { role: "user", parts: [{ type: "data", data: { many: data } }] },
    });
    expect([early.status, early.text]).toEqual([400, expect.stringContaining("100 values")]);
  });
});
