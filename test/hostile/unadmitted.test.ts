/** What callers without credentials can make the server do: nothing is parsed for them, and little is kept. */
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";
import { readMetric } from "../support/metrics.ts";
import { A2A_V1, openRequest, rpcBody, sendRaw } from "../support/raw-http.ts";
import { beginRequest, exchangeBytes, openSocket, readSocket } from "../support/raw-socket.ts";

const KEY = "alice-key-5f0c2b77d1";
const agent = defineAgent({ name: "Quiet", description: "Says little.", skills: [], run: async () => "done" });

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return startServer({ agents: { quiet: agent }, auth: { apiKeys: [{ key: KEY, owner: "alice" }] }, ...options });
}

const PLACES = [
  "/",
  "/agents/quiet",
  "/rest/message:send",
  "/rest/v1/message:send",
  "/tasks/send",
  "/registry/search",
  "/registry/agents",
];

describe("the body of a caller without credentials", () => {
  const post = (url: string, path: string, body: string, headers = {}) =>
    sendRaw(url, { path, body, headers: { ...A2A_V1, ...headers } });

  it.each(PLACES)("is not parsed: %s", async (path) => {
    const { url } = await start();
    const valid = await post(url, path, '{"jsonrpc":"2.0","id":7,"method":"ListTasks"}');
    expect([valid.status, valid.json.id ?? null]).toEqual([401, null]);
    expect(await post(url, path, "{".repeat(1_000))).toMatchObject({ status: 401, text: valid.text });
    expect((await post(url, path, "{".repeat(1_000), { "x-api-key": KEY })).status).not.toBe(401);
  });
});

describe("chunks of one byte", () => {
  const CHUNKED = ["transfer-encoding: chunked"];

  it("are refused with the first of them, and their connection is closed", async () => {
    const { port } = await start();
    const { answer, socket } = beginRequest(port, "/", CHUNKED, "1\r\n \r\n".repeat(5_000));
    expect(await answer).toMatch(/^HTTP\/1\.1 401 /);
    await once(socket, "close");
  });

  it("end the connection where there are many while their caller is still being checked", async () => {
    const endless = new Promise<never>(() => {});
    const { port } = await start({ authenticate: () => endless });
    const { answer, socket } = beginRequest(port, "/", [...CHUNKED, "x-api-key: any"], "1\r\n \r\n".repeat(5_000));
    await once(socket, "close");
    expect(await answer).toBe("");
  });

  it("are read from a caller with credentials, within reason", async () => {
    const { port } = await start();
    const body = rpcBody("ListTasks");
    const chunks = (text: string) => [...text].map((one) => `1\r\n${one}\r\n`).join("");
    const headers = [...CHUNKED, `x-api-key: ${KEY}`, "a2a-version: 1.0", "connection: close"];
    expect(await beginRequest(port, "/", headers, `${chunks(body)}0\r\n\r\n`).answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("requests that are sent before earlier ones are answered", () => {
  const CARD = "GET /.well-known/agent-card.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

  it("are answered in turn", async () => {
    const { port } = await start();
    const last = CARD.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    const answers = await exchangeBytes(port, CARD.repeat(7) + last);
    expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(8);
  });

  it("end the connection where they are large, unless a caller on it is known", async () => {
    const { port } = await start();
    const large = CARD.replace("\r\n\r\n", `\r\nx-long: ${"x".repeat(15_000)}\r\n\r\n`);
    const last = large.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    const count = (answers: string) => answers.match(/HTTP\/1\.1 200 /g)?.length ?? 0;
    expect(count(await readSocket(write(port, large.repeat(6) + last)))).toBeLessThan(4);
    const body = rpcBody("ListTasks");
    const known = `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\na2a-version: 1.0\r\nx-api-key: ${KEY}\r\ncontent-length: ${body.length}\r\n\r\n`;
    const socket = write(port, known + body);
    await once(socket, "data");
    socket.write(large.repeat(6) + last);
    expect(count(await readSocket(socket))).toBe(7);
  });

  it("have a bounded number of headers", async () => {
    const { port } = await start();
    const ask = (headers: number) => {
      const fields = Array.from({ length: headers }, (_, at) => `x-${at}: a`).join("\r\n");
      return exchangeBytes(port, CARD.replace("\r\n\r\n", `\r\nconnection: close\r\n${fields}\r\n\r\n`));
    };
    expect(await ask(100)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await ask(130)).toMatch(/^HTTP\/1\.1 431 /);
    expect(await ask(1_500)).toMatch(/^HTTP\/1\.1 431 /);
  });

  function write(port: number, bytes: string) {
    const socket = openSocket(port);
    socket.write(bytes);
    return socket;
  }

  it("end the connection where they are far too many", async () => {
    const { port } = await start();
    const socket = openSocket(port);
    socket.write(CARD.repeat(500));
    const answers = (await readSocket(socket)).match(/HTTP\/1\.1 200 /g) ?? [];
    expect(answers.length).toBeLessThan(100);
  });
});

describe("gRPC calls without credentials", () => {
  const CALL = {
    ":method": "POST",
    ":path": "/lf.a2a.v1.A2AService/ListTasks",
    "content-type": "application/grpc",
    te: "trailers",
  };

  async function open(): Promise<ClientHttp2Session> {
    const { grpc } = await start();
    const session = connectHttp2(`http://${grpc}`).on("error", () => {});
    closeLater(() => session.destroy());
    await once(session, "remoteSettings");
    return session;
  }

  it("are refused before a message has come, and not left open", async () => {
    const session = await open();
    const stream = session.request(CALL).on("error", () => {});
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    expect(headers["grpc-status"]).toBe("16");
    stream.resume();
    await once(stream, "close");
  });

  it("are few at a time, until the connection has shown credentials", async () => {
    const session = await open();
    const few = session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY;
    expect(few).toBeLessThan(100);
    const stream = session.request({ ...CALL, "x-api-key": KEY });
    stream.resume().end(Buffer.alloc(5));
    await once(session, "remoteSettings");
    expect(session.remoteSettings.maxConcurrentStreams).toBeGreaterThan(few);
  });

  it("are counted as long as they are open, also if the check of their caller takes a while", async () => {
    const CALLS = 192;
    /** No more of one address are checked at a time. */
    const CHECKED = 128;
    const refusals: (() => void)[] = [];
    const authenticate = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }) =>
      headers["x-slow"] === undefined
        ? undefined
        : new Promise<undefined>((_, refuse) => {
            refusals.push(() => refuse(new ProtocolError("UNAUTHENTICATED", "Not known.")));
            if (refusals.length >= CHECKED) for (const one of refusals) one();
          });
    const { grpc, url } = await start({ authenticate });
    const sessions = Array.from({ length: CALLS / 16 }, () => connectHttp2(`http://${grpc}`).on("error", () => {}));
    for (const session of sessions) closeLater(() => session.destroy());
    expect(await readMetric(url, "dragoman_requests_limited_total")).toBe(0);
    const calls = sessions.flatMap((session) =>
      Array.from({ length: 16 }, () => session.request({ ...CALL, "x-slow": "1" }).on("error", () => {})),
    );
    await Promise.all(calls.map((call) => Promise.race([once(call, "response"), once(call.resume(), "close")])));
    expect(await readMetric(url, "dragoman_requests_limited_total")).toBeGreaterThan(0);
  });

  it("cannot make the server read much that is not one of them", async () => {
    const { grpc = "" } = await start();
    const socket = openSocket(Number(grpc.split(":").at(-1)));
    const closed = once(socket.resume(), "close");
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    const ping = Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, ...Array.from({ length: 8 }, () => 0)]);
    socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings]));
    socket.write(Buffer.concat(Array.from({ length: 50_000 }, () => ping)));
    await closed;
  });
});

describe("credentials that take long to check", () => {
  it("are checked in a bounded number, so that another address still has its turn", async () => {
    const endless = new Promise<never>(() => {});
    const { url } = await start({
      auth: {},
      trustProxy: ["127.0.0.1"],
      authenticate: async ({ remoteAddress }) => (remoteAddress === "203.0.113.7" ? endless : undefined),
    });
    const ask = (from: string) =>
      openRequest(url, { body: rpcBody("ListTasks"), headers: { ...A2A_V1, "x-forwarded-for": from } });
    const flood = Array.from({ length: 129 }, () => ask("203.0.113.7"));
    const { headers, response, status } = await Promise.any(flood);
    expect([status, headers["retry-after"]]).toEqual([429, "1"]);
    expect(String(await response.toArray())).toContain("Too many credentials are being checked.");
    expect((await ask("203.0.113.8")).status).toBe(200);
  });
});

describe("wrong credentials behind a proxy", () => {
  it("are counted for the address that the proxy adds", async () => {
    const { url } = await start({ trustProxy: ["127.0.0.0/8"], limits: { failedLogins: 2 } });
    const ask = async (from: string, key: string) => {
      const headers = { ...A2A_V1, "x-api-key": key, "x-forwarded-for": from };
      return (await sendRaw(url, { body: rpcBody("ListTasks"), headers })).status;
    };
    for (let failed = 0; failed < 2; failed++) expect(await ask("203.0.113.7", "wrong")).toBe(401);
    expect(await ask("198.51.100.1, 203.0.113.7", "wrong")).toBe(429);
    expect(await ask("203.0.113.7", KEY)).toBe(200);
    expect(await ask("203.0.113.8", "wrong")).toBe(401);
  });
});
