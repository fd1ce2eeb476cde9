/** Agents that dial a server whose time stands still until the test moves it. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { toolsOf } from "../../../core/dialects/suite/join.ts";
import { FakeClock } from "../../../core/engine/testing/fake-clock.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import type { FrameStream } from "../../../core/model/operation.ts";
import { type Log, NO_METER, SILENT_LOG } from "../../../core/model/ports.ts";
import { createAcceptor } from "../../../core/server/carriers/accept.ts";
import { signedHeaders } from "../codec/signature.ts";
import { createDialInCarrier, LINK_PATH } from "./accept-links.ts";

const CREDENTIALS = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

async function start(patienceMs = 90_000) {
  const clock = new FakeClock();
  const noticed: (() => void)[] = [];
  const warnings: string[] = [];
  const log: Log = {
    ...SILENT_LOG,
    warn: (_fields, line) => void warnings.push(line),
    info: (_fields, line) => {
      if (line === "Connection closed.") noticed.shift()?.();
    },
  };
  const dialIns = new Map([["agent", { credentials: CREDENTIALS, patienceMs }]]);
  const carrier = createDialInCarrier(dialIns, { ...toolsOf(), clock, log, meter: NO_METER });
  const peer = carrier.peer?.(CREDENTIALS.agentId);
  if (carrier.accept === undefined || peer === undefined) throw new Error("Agents can dial in.");
  const links = createAcceptor([{ ...carrier.accept, name: carrier.name, dialect: "xiaoyi-link" }], {
    gate: { checkAddress: () => undefined, refuse: (error) => error },
    clock,
    log,
    endpoint: { publicUrl: undefined, mount: "" },
  });
  const stream = (text: string) => peer.dispatch({ kind: "stream", message: message(text), chosenId: "1" }, {});
  const server = createServer();
  const recognised: string[] = [];
  const caller = { remoteAddress: "127.0.0.1", recognise: () => void recognised.push("agent") };
  server.on("upgrade", (request, socket, head) => links.upgrade(request, socket, head, caller));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  cleanups.push(() => {
    links.close();
    server.close();
    server.closeAllConnections();
  });
  const open = (secretKey = CREDENTIALS.sk) => {
    const signed = signedHeaders({ accessKey: CREDENTIALS.ak, secretKey }, clock.now());
    const socket = new WebSocket(`ws://127.0.0.1:${port}${LINK_PATH}`, {
      headers: { ...signed, "x-agent-id": CREDENTIALS.agentId },
    });
    cleanups.push(() => socket.terminate());
    return socket;
  };
  const dial = async () => {
    const socket = open();
    await once(socket, "open");
    socket.send(JSON.stringify({ msgType: "clawd_bot_init", agentId: CREDENTIALS.agentId }));
    return socket;
  };
  /** When a dial that was refused may be repeated, in seconds. */
  const refusedFor = async () => {
    const socket = open().on("error", () => {});
    const [, { headers, statusCode }] = await once(socket, "unexpected-response");
    expect(statusCode).toBe(429);
    return Number(headers["retry-after"]);
  };
  /** Resolves when the server has noticed, too. */
  const vanish = (socket: WebSocket) => {
    socket.terminate();
    return new Promise<void>((resolve) => noticed.push(resolve));
  };
  return { clock, dial, open, recognised, refusedFor, stream, vanish, warnings };
}

const message = (text: string) =>
  ({ messageId: `m-${text}`, role: "ROLE_USER", contextId: "s", parts: [{ text }] }) as const;

/** Frames of the task, one text each under an id of its own. */
function answer(socket: WebSocket, taskId: string, text: string, final: boolean): void {
  const artifact = { artifactId: `a-${text}`, parts: [{ kind: "text", text }] };
  const result = { taskId, kind: "artifact-update", append: true, lastChunk: true, final, artifact };
  const msgDetail = JSON.stringify({ jsonrpc: "2.0", id: taskId, result });
  socket.send(JSON.stringify({ msgType: "agent_response", agentId: "agent-1", sessionId: "s", taskId, msgDetail }));
}

async function rest(frames: FrameStream): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const batch of frames) events.push(...batch.map(({ event }) => event));
  return events;
}

const textsOf = (events: readonly StreamEvent[]) =>
  events.flatMap((event) => ("artifactUpdate" in event ? event.artifactUpdate.artifact.parts : []));

describe("an agent that is away", () => {
  it("for a minute may still answer: its task is open, and the answer over the new socket is taken", async () => {
    const { clock, dial, stream, vanish } = await start();
    const first = await dial();
    const frames = await stream("hello");
    await once(first, "message");
    answer(first, "s&1", "So", false);
    const reader = frames[Symbol.asyncIterator]();
    await reader.next();
    await vanish(first);
    await clock.advance(60_000);
    const second = await dial();
    answer(second, "s&1", " far away.", true);
    const events = await rest({ [Symbol.asyncIterator]: () => reader });
    expect(textsOf(events).at(-1)).toEqual({ text: " far away." });
    expect(events.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  it("for longer than its patience fails its task", async () => {
    const { clock, dial, stream, vanish } = await start(20_000);
    const socket = await dial();
    const frames = await stream("hello");
    await once(socket, "message");
    await vanish(socket);
    const failed = rest(frames).catch((error: Error) => error.message);
    await clock.advance(20_000);
    expect(await failed).toBe("The connection to the agent was lost, and it did not come back within 20 s.");
  });

  it("when a message comes is waited for 10 s", async () => {
    const { clock, stream } = await start();
    const failed = stream("hello").catch((error: Error) => error.message);
    await clock.advance(10_000);
    expect(await failed).toBe("The agent is not connected.");
  });
});

it("a connection is of a known caller only after its credentials were accepted", async () => {
  const { dial, open, recognised } = await start();
  const [, { statusCode }] = await once(
    open("wrong").on("error", () => {}),
    "unexpected-response",
  );
  expect([statusCode, recognised]).toEqual([401, []]);
  await dial();
  expect(recognised).toEqual(["agent"]);
});

it("an agent that is started twice does not take the link from itself without end: the newer one keeps it a while", async () => {
  const { clock, dial, refusedFor, warnings } = await start();
  const first = await dial();
  const second = await dial();
  expect(String((await once(first, "close"))[1])).toMatch(/Another connection of this agent/);
  expect(await refusedFor()).toBe(5);
  await clock.advance(5_000);
  const third = await dial();
  await once(second, "close");
  expect(await refusedFor()).toBe(10);
  await clock.advance(10_000);
  await dial();
  await once(third, "close");
  expect(await refusedFor()).toBe(20);
  expect(warnings.filter((line) => /started twice/.test(line))).toHaveLength(1);
});
