/** Answers that their callers do not read: how much of them is held, and for how long. */
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { field, framed } from "../hostile/grpc-request.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";
import { readMetric, untilMetric } from "../support/metrics.ts";
import { A2A_V1, callRpc, rpcBody } from "../support/raw-http.ts";
import { openSocket } from "../support/raw-socket.ts";
import { userMessage } from "../support/wire-client.ts";

const ALICE = "alice-key-5f0c2b77d1";
const BOB = "bob-key-c1d2e3f4a5b6";
/** More than the operating system takes for a reader that takes nothing. */
const LARGE = "x".repeat(15_000_000);

const agent = defineAgent({
  name: "Long",
  description: "Answers at length.",
  skills: [{ id: "answer", name: "Answer", description: "Answers at length." }],
  async *run(turn) {
    yield turn.artifact({ name: "answer", text: LARGE });
  },
});

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  const apiKeys = [
    { key: ALICE, owner: "alice" },
    { key: BOB, owner: "bob" },
  ];
  return startServer({ agents: { agent }, auth: { apiKeys }, ...options });
}

async function taskOf(url: string, key: string): Promise<string> {
  const params = { message: userMessage("hi"), configuration: { returnImmediately: false } };
  return (await callRpc(url, "SendMessage", params, { "x-api-key": key })).json.result.task.id;
}

const getTask = (url: string, key: string, id: string) => callRpc(url, "GetTask", { id }, { "x-api-key": key });

/** The bytes of a request for a task. */
function requestFor(key: string, id: string): string {
  const body = rpcBody("GetTask", { id });
  const head = Object.entries({ host: "127.0.0.1", ...A2A_V1, "x-api-key": key, "content-length": body.length });
  return `POST / HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
}

/** Asks for the task and reads nothing of the answer. */
function askAndLeaveUnread(port: number, key: string, id: string): Socket {
  const socket = openSocket(port).pause();
  socket.write(requestFor(key, id));
  return socket;
}

const UNSENT = "dragoman_unsent_bytes";
const STALLED = "dragoman_readers_stalled_total";
const isMuch = (bytes: number) => bytes > 5_000_000;

describe("answers that are not read over HTTP", () => {
  it("are bounded by owner, and leave room for others", async () => {
    const { url, port } = await start({ limits: { unsentPerOwner: 20_000_000 } });
    const [own, others] = [await taskOf(url, ALICE), await taskOf(url, BOB)];
    const unread = askAndLeaveUnread(port, ALICE, own);
    await untilMetric(url, UNSENT, isMuch);
    const refused = await getTask(url, ALICE, own);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
    expect(refused.text).toContain("Too many answers wait to be read; read those first.");
    for (const _ of [1, 2]) expect((await getTask(url, BOB, others)).status).toBe(200);
    unread.destroy();
    await untilMetric(url, UNSENT, 0);
    expect((await getTask(url, ALICE, own)).status).toBe(200);
  });

  it("are bounded for all together", async () => {
    const { url, port } = await start({ limits: { unsent: 20_000_000 } });
    const [own, others] = [await taskOf(url, ALICE), await taskOf(url, BOB)];
    askAndLeaveUnread(port, ALICE, own);
    await untilMetric(url, UNSENT, isMuch);
    expect((await getTask(url, BOB, others)).status).toBe(429);
  });

  it("are all of the budget's where no credentials can be shown, and one is sent whatever its length", async () => {
    const { url } = await start({ auth: {}, limits: { unsent: 1_000, unsentPerOwner: 10 } });
    expect((await getTask(url, "", await taskOf(url, ""))).status).toBe(200);
  });

  it("are held for as long as a stalled stream", async () => {
    const { url, port } = await start({ times: { stalledReaderMs: 200 } });
    askAndLeaveUnread(port, ALICE, await taskOf(url, ALICE));
    await untilMetric(url, STALLED, 1);
    expect(await readMetric(url, UNSENT)).toBe(0);
  });

  it("end with their connection where several are asked for at once", async () => {
    const { url, port } = await start();
    const id = await taskOf(url, ALICE);
    const socket = askAndLeaveUnread(port, ALICE, id);
    socket.write(requestFor(ALICE, id).repeat(3));
    await untilMetric(url, UNSENT, isMuch);
    socket.destroy();
    await untilMetric(url, UNSENT, 0);
  });
});

describe("answers that are not read over gRPC", () => {
  async function open(grpc: string | undefined, window: number): Promise<ClientHttp2Session> {
    const session = connectHttp2(`http://${grpc}`, { settings: { initialWindowSize: window } });
    session.on("error", () => {});
    closeLater(() => session.destroy());
    await once(session, "remoteSettings");
    return session;
  }

  function ask(session: ClientHttp2Session, key: string, id: string) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/lf.a2a.v1.A2AService/GetTask",
      "content-type": "application/grpc",
      te: "trailers",
      "a2a-version": "1.0",
      "x-api-key": key,
    });
    stream.on("error", () => {}).end(framed(field(2, id)));
    return stream;
  }

  it("are bounded by owner, and leave room for others", async () => {
    const { url, grpc } = await start({ limits: { unsentPerOwner: 20_000_000 } });
    const [own, others] = [await taskOf(url, ALICE), await taskOf(url, BOB)];
    const session = await open(grpc, 0);
    const unread = ask(session, ALICE, own);
    await once(unread, "response");
    expect(await readMetric(url, UNSENT)).toBeGreaterThan(LARGE.length);
    const [refused] = await once(ask(session, ALICE, own), "response");
    expect([refused["grpc-status"], refused["retry-after"]]).toEqual(["8", "1"]);
    const reading = ask(await open(grpc, 1_000_000), BOB, others).resume();
    const [trailers] = await once(reading, "trailers");
    expect(trailers["grpc-status"]).toBe("0");
    unread.close();
    await untilMetric(url, UNSENT, 0);
  });

  it("are held for as long as a stalled stream", async () => {
    const { url, grpc } = await start({ times: { stalledReaderMs: 200 } });
    const unread = ask(await open(grpc, 0), ALICE, await taskOf(url, ALICE));
    await new Promise((resolve) => unread.once("close", resolve));
    expect(unread.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    await untilMetric(url, UNSENT, 0);
    expect(await readMetric(url, STALLED)).toBe(1);
  });
});
