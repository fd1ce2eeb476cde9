import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createRemoteAgent } from "../../../core/client/call/remote-agent.ts";
import { connect } from "../../../core/client/connect.ts";
import { ConnectionError } from "../../../core/client/errors.ts";
import type { ConnectOptions, RemoteAgent } from "../../../core/client/options.ts";
import { textOf } from "../../../core/model/message.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import type { Network } from "../networks/network.ts";
import { type Member, MemoryNetwork, type RawPost } from "../runtime/testing/memory-network.ts";
import { connectPeer } from "./connect-peer.ts";
import { loadChatDialect } from "./load-dialect.ts";

const ME: Member = { id: "u-me", name: "me", bot: true };
const HELPER: Member = { id: "u-helper", name: "helper", bot: true };
const ADDRESS = "a2a-lite:memory/lobby#u-helper";
const CHANNELS = [{ memory: { rooms: ["other"] } }, { memory: { rooms: ["lobby"] } }];
const CARD = { protocol: "a2a-lite/1.0", agent: { id: "h", name: "Helper" }, skills: [{ id: "poem", name: "Poems" }] };

let network: MemoryNetwork;
let agents: RemoteAgent[];
let isUp: boolean;

beforeEach(() => {
  network = new MemoryNetwork({ clock: { now: Date.now, after: () => () => {} } });
  agents = [];
  isUp = true;
});

afterEach(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
});

const settings = z.strictObject({ rooms: z.array(z.string()) });
const memory: Network<z.infer<typeof settings>> = {
  name: "memory",
  title: "Memory",
  packages: [],
  settings,
  account: () => "one",
  secrets: () => [],
  rooms: ({ rooms }) => rooms,
  setup: [],
  abilities: new MemoryNetwork({ clock: { now: Date.now, after: () => () => {} } }).abilities,
  async open({ rooms }) {
    if (!isUp) throw new DialError("unreachable", "Connection refused");
    expect(rooms).toEqual(["lobby"]);
    return network.open(ME);
  },
};

async function open(options: ConnectOptions = {}): Promise<RemoteAgent> {
  const load = async () => ({ ...(await loadChatDialect()), networks: [memory as Network] });
  const { caller, close } = await connectPeer(ADDRESS, { channels: CHANNELS, ...options }, load);
  const agent = createRemoteAgent(caller, close);
  agents.push(agent);
  return agent;
}

/** The next post of the client that begins so, once it is there. */
async function posted(start: string, after = 0): Promise<RawPost> {
  for (;;) {
    const found = network.posts.slice(after).find(({ by, text }) => by === ME.id && text.startsWith(start));
    if (found !== undefined) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const say = (text: string) => network.say(HELPER, text);
const idIn = ({ text }: RawPost) => /(?:id|task)=([\w-]+)/.exec(text)?.[1] ?? "";

async function openWithCard(options?: ConnectOptions): Promise<RemoteAgent> {
  const opening = open(options);
  await posted("[A2A:discover");
  say(`[A2A:card]\n\`\`\`json\n${JSON.stringify(CARD)}\n\`\`\``);
  return opening;
}

describe("a participant of a chat room", () => {
  it("has the card that it sends, and the same methods as any agent", async () => {
    const agent = await openWithCard();
    expect(agent.card).toMatchObject({ name: "Helper", skills: [{ id: "poem" }] });
    expect(agent.interface).toMatchObject({ url: ADDRESS, dialect: "a2a-lite" });
    const sending = agent.send("Write.");
    const id = idIn(await posted("[A2A:task"));
    say(`[A2A:result task=${id} state=completed]\nDone.`);
    const outcome = await sending;
    const task = "task" in outcome ? outcome.task : undefined;
    expect(textOf(task?.artifacts?.[0]?.parts ?? [])).toBe("Done.");
    expect(await agent.get(id)).toEqual(task);
    await expect(agent.listPage()).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  });

  it("is streamed, and leaving the stream ends it at once", async () => {
    const agent = await openWithCard();
    const states: string[] = [];
    for await (const { event } of agent.stream("Write.")) {
      if ("task" in event) say(`[A2A:status task=${event.task.id} state=working]\nBusy.`);
      if ("statusUpdate" in event) {
        states.push(event.statusUpdate.status.state);
        break;
      }
    }
    expect(states).toEqual(["TASK_STATE_WORKING"]);
  });

  it("is cancelled", async () => {
    const agent = await openWithCard();
    const sending = agent.send("Write.");
    const id = idIn(await posted("[A2A:task"));
    const cancelling = agent.cancel(id);
    await posted("[A2A:cancel");
    say(`[A2A:result task=${id} state=cancelled]`);
    expect((await cancelling).status.state).toBe("TASK_STATE_CANCELED");
    expect(await sending).toMatchObject({ task: { status: { state: "TASK_STATE_CANCELED" } } });
  });

  it("without a card is called all the same", async () => {
    const notices: string[] = [];
    const agent = await open({ timeoutMs: 1, onNotice: ({ message }) => notices.push(message) });
    expect(agent.card).toMatchObject({ name: "u-helper", skills: [] });
    expect(notices).toEqual([`${ADDRESS} sent no card; it may not support A2A-Lite.`]);
  });

  it("is called again after the connection was lost", async () => {
    const agent = await openWithCard();
    network.break(ME.id);
    const sending = agent.send("Write.");
    const id = idIn(await posted("[A2A:task"));
    say(`[A2A:result task=${id} state=completed]\nDone.`);
    expect(await sending).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  });
});

describe("calls end", () => {
  it("when the agent is closed, with its connection", async () => {
    const agent = await openWithCard();
    const sending = agent.send("Write.");
    const streaming = agent.stream("Write.")[Symbol.asyncIterator]();
    const next = streaming.next().then(() => streaming.next());
    await posted("[A2A:task", (network.posts.indexOf(await posted("[A2A:task")) ?? 0) + 1);
    await new Promise((resolve) => setImmediate(resolve));
    await agent.close();
    await expect(sending).rejects.toMatchObject({ name: "ConnectionError", code: "aborted" });
    await expect(next).rejects.toMatchObject({ name: "ConnectionError", code: "aborted" });
    await expect(agent.send("More.")).rejects.toMatchObject({ name: "ConnectionError", code: "aborted" });
  });

  it("when their signal is aborted, or their time is over", async () => {
    const agent = await openWithCard();
    const abort = new AbortController();
    const sending = agent.send("Write.", { signal: abort.signal });
    await posted("[A2A:task");
    abort.abort();
    await expect(sending).rejects.toMatchObject({ code: "aborted" });
    await expect(agent.send("Write.", { timeoutMs: 1 })).rejects.toMatchObject({ code: "timeout" });
  });
});

describe("connecting", () => {
  it("fails if the network cannot be reached", async () => {
    isUp = false;
    const error = await open().catch((reason: unknown) => reason);
    expect(ConnectionError.is(error)).toBe(true);
    expect(error).toMatchObject({ code: "unreachable", message: `${ADDRESS}: Connection refused` });
  });

  it.each([
    [ADDRESS, {}, 'there is no network "memory"; the networks are irc,'],
    ["a2a-lite:irc/#agents", {}, "must be a2a-lite:<network>/<room>#<participant>"],
    ["a2a-lite:irc/#agents#helper", {}, "channels must have an account of IRC that is in #agents"],
    [
      "a2a-lite:irc/#agents#helper",
      { channels: [{ irc: { host: "localhost", nick: "me", channels: ["#other"] } }] },
      "channels must have an account of IRC that is in #agents",
    ],
    ["a2a-lite:irc/#agents#helper", { channels: [{ irc: { nick: "me" } }] }, "in channels, irc.host "],
  ])("to %s with %j is refused", async (address, options, message) => {
    const error = await connect(address, options).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as TypeError).message).toContain(message);
  });
});
