import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../../client.ts";
import { createEchoAgent } from "../../../core/agents/builtin.ts";
import type { Log } from "../../../core/model/ports.ts";
import { type ServeOptions, serve } from "../../../index.ts";
import { matrix as matrixNetwork } from "../networks/matrix.ts";
import { SUITE_TOOLS } from "../networks/suite/channel-suite.ts";
import { type MatrixServer, startMatrixServer } from "../networks/testing/matrix-server.ts";
import type { ChannelEntryOptions } from "./entries.ts";

const ROOM = "!team:sim";
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startRoom(): Promise<{
  readonly server: MatrixServer;
  readonly token: string;
  readonly posted: (text: string) => Promise<void>;
}> {
  const server = await startMatrixServer({ rate: { burst: 1_000, perSecond: 1_000 } });
  cleanups.push(() => server.close());
  const token = server.register("agent", "Agent");
  const personToken = server.register("person", "Person");
  server.createRoom({ id: ROOM, members: ["@agent:sim", "@person:sim"] });
  return { server, token, posted: await joinRoom(server, personToken) };
}

async function start(options: Omit<ServeOptions, "agents" | "port" | "grpcPort">) {
  const served = await serve({ agents: { echo: createEchoAgent() }, port: 0, grpcPort: false, ...options });
  cleanups.push(() => served.close());
  return served;
}

/** Resolves with the first message of the log that matches. */
function watchLog() {
  const lines: { readonly fields: object; readonly message: string }[] = [];
  const waiting: { readonly text: string; readonly resolve: (fields: object) => void }[] = [];
  const write = (fields: object, message: string): void => {
    lines.push({ fields, message });
    for (const { resolve, text } of waiting) if (message.includes(text)) resolve(fields);
  };
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const logged = (text: string) =>
    new Promise<object>((resolve) => {
      const found = lines.find(({ message }) => message.includes(text));
      if (found === undefined) waiting.push({ text, resolve });
      else resolve(found.fields);
    });
  return { log, logged, lines };
}

/** Joins the room as the person who gives work; resolves when the agent has posted this text. */
async function joinRoom(server: MatrixServer, token: string) {
  const settings = { homeserver: server.url, token, rooms: [ROOM] };
  const options = { cursors: new Map(), signal: new AbortController().signal };
  const channel = await matrixNetwork.open(settings, options, SUITE_TOOLS);
  cleanups.push(() => channel.close());
  const posts = channel.posts[Symbol.asyncIterator]();
  return async (text: string): Promise<void> => {
    for (;;) {
      const { done, value } = await posts.next();
      if (done === true) throw new Error("The channel has closed.");
      if (value.sender.id === "@agent:sim" && value.text.includes(text)) return;
    }
  };
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const mention = (body: string) => ({ msgtype: "m.text", body, "m.mentions": { user_ids: ["@agent:sim"] } });

describe("channels of a server", () => {
  it("are open connections over which the agent answers; its tasks can be read over A2A", async () => {
    const { posted, server, token } = await startRoom();
    const { log, logged } = watchLog();
    const matrix = { homeserver: server.url, token, rooms: [ROOM] };
    const served = await start({ log, channels: [{ matrix, agent: "echo", allowPeers: ["@person:sim"] }] });
    expect(await logged("Connected to Matrix.")).toMatchObject({
      channel: expect.stringMatching(/^a2a-lite:matrix:echo:[0-9a-f]{16}@127\.0\.0\.1:\d+$/),
      agent: "echo",
    });
    server.send(ROOM, "@person:sim", mention("[A2A:task id=t1]\nhello there"));
    await posted("[A2A:result task=t1 state=completed");
    const agent = await connect(`${served.url}/agents/echo`);
    expect(await all(agent.list())).toMatchObject([{ status: { state: "TASK_STATE_COMPLETED" } }]);
    const metrics = await (await fetch(`${served.url}/metrics`)).text();
    expect(metrics).toContain("dragoman_a2a_lite_connections 1\n");
    expect(metrics).toContain("dragoman_a2a_lite_connections_up 1\n");
  });

  it("belong to their network and agent if the server identifies callers, or to the owner that is named", async () => {
    const { posted, server, token } = await startRoom();
    const { log, logged } = watchLog();
    const matrix = { homeserver: server.url, token, rooms: [ROOM] };
    const auth = { apiKeys: [{ key: "a-key-of-alice-s-own", owner: "alice" }] };
    const served = await start({ log, auth, channels: [{ matrix, agent: "echo", allowPeers: "*", owner: "alice" }] });
    await logged("Connected to Matrix.");
    server.send(ROOM, "@person:sim", mention("[A2A:task id=t1]\nhello there"));
    await posted("[A2A:result task=t1 state=completed");
    const agent = await connect(`${served.url}/agents/echo`, { headers: { "X-API-Key": "a-key-of-alice-s-own" } });
    expect(await all(agent.list())).toHaveLength(1);
  });

  it("serve as many messages of a peer as the entry allows", async () => {
    const { posted, server, token } = await startRoom();
    const { log, logged } = watchLog();
    const matrix = { homeserver: server.url, token, rooms: [ROOM] };
    const rate = { messages: 1, perMs: 60_000 };
    await start({ log, channels: [{ matrix, agent: "echo", allowPeers: "*", rate }] });
    await logged("Connected to Matrix.");
    for (const id of ["t1", "t2"]) server.send(ROOM, "@person:sim", mention(`[A2A:task id=${id}]\nhello`));
    await posted("Too many messages: 1 in 1 min are served.");
  });

  it("say why they cannot be opened, without the secret", async () => {
    const { server } = await startRoom();
    const { lines, log, logged } = watchLog();
    const matrix = { homeserver: server.url, token: "syt_wrong_token", rooms: [ROOM] };
    await start({ log, channels: [{ matrix, agent: "echo" }] });
    const { reason } = (await logged("Could not connect to Matrix")) as { reason?: string };
    expect(reason).toContain("token");
    expect(JSON.stringify(lines)).not.toContain("syt_wrong_token");
  });

  it.each([
    [{ agent: "echo" }, "exactly one network"],
    [{ agent: "nobody", irc: { host: "h", nick: "n", channels: ["c"] } }, 'there is no agent "nobody"'],
    [{ agent: "echo", irc: { host: "h", nick: "n" } }, "channels[0].irc.channels: is required"],
    [{ agent: "echo", ircc: {} }, 'channels[0].ircc: unknown key; did you mean "irc"?'],
  ])("are refused as %j", async (entry, message) => {
    await expect(start({ channels: [entry as ChannelEntryOptions] })).rejects.toThrow(message);
  });

  it("have an account each", async () => {
    const irc = { host: "irc.example.org", nick: "n", channels: ["c"] };
    const channels = [
      { irc, agent: "echo" },
      { irc: { ...irc, channels: ["d"] }, agent: "echo" },
    ];
    await expect(start({ channels })).rejects.toThrow("two entries have the same account of IRC");
  });
});
