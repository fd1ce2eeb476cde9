/** Agents that call a participant of a chat room, on real servers of these networks. */
import { afterEach, describe, expect, it } from "vitest";
import { connect, type RemoteAgent, textOf } from "../../src/client.ts";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { Agent } from "../../src/core/engine/agent.ts";
import { fieldsOf } from "../../src/core/model/json.ts";
import type { Task } from "../../src/core/model/task.ts";
import { buildAgents } from "../../src/core/server/config/index.ts";
import { parseConfig } from "../../src/core/server/config/load.ts";
import { toServeOptions } from "../../src/core/server/start.ts";
import type { Channel, Post } from "../../src/core/wire/channel.ts";
import { mqtt } from "../../src/features/chat/networks/mqtt.ts";
import { SUITE_TOOLS } from "../../src/features/chat/networks/suite/channel-suite.ts";
import { serve } from "../../src/index.ts";
import { ServedFolder } from "../runtime/served-folder.ts";
import { type ChatServer, hasServer, startMosquitto, startNgircd } from "./servers.ts";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Asks back if it is told to book, works until it is stopped if it is told to wait, else writes. */
const helper = defineAgent({
  name: "Helper of the room",
  description: "Writes poems.",
  skills: [{ id: "poem", name: "Poems", description: "Writes poems." }],
  async *run(turn) {
    if (turn.text === "Book") {
      yield turn.inputRequired("When?");
      return;
    }
    yield turn.working("Thinking.");
    if (turn.text === "Wait") {
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      return;
    }
    yield turn.artifact({ artifactId: "poem", parts: [{ text: `A poem: ${turn.text}, hop ${turn.hops.hops}` }] });
    yield turn.completed();
  },
});

/** In-process servers, each with an account of its own on the network. */
async function serveFrom(yaml: string, more: Readonly<Record<string, Agent>> = {}) {
  const config = parseConfig(yaml, { source: "dragoman.yaml", folder: process.cwd(), environment: {} });
  const agents = new Map([...(await buildAgents(config)), ...Object.entries(more)]);
  const server = await serve({ ...toServeOptions(config, agents), port: 0, grpcPort: false, store: "memory:" });
  closing.push(() => server.close());
  await expect.poll(() => isConnected(server.url)).toBe(true);
  return server;
}

async function isConnected(url: string): Promise<boolean> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return /^dragoman_a2a_lite_connections_up 1$/m.test(metrics);
}

function artifactText(outcome: Awaited<ReturnType<RemoteAgent["send"]>>): string {
  const task = "task" in outcome ? outcome.task : undefined;
  return `${task?.status.state.slice("TASK_STATE_".length)}: ${task?.artifacts?.map(({ parts }) => textOf(parts)).join()}`;
}

describe.runIf(hasServer("ngircd"))("an agent in an IRC channel", () => {
  async function openRoom() {
    const ircd = await startNgircd();
    closing.push(() => ircd.close());
    const account = (nick: string) => `{ host: 127.0.0.1, port: ${ircd.port}, nick: ${nick}, channels: ['#agents'] }`;
    await serveFrom(
      `agents: { helper: { use: echo } }\nchannels: [{ irc: ${account("helper")}, agent: helper, allowPeers: "*" }]`,
      { helper },
    );
    const front = await serveFrom(`
agents:
  far: { remote: 'a2a-lite:irc/#agents#helper' }
  chain:
    workflow: { steps: { write: { url: 'a2a-lite:irc/#agents#helper', input: 'About \${input.text}' } } }
channels: [{ irc: ${account("front")}, agent: far }]`);
    return { front, ircd };
  }

  it("is served as an agent of another server, with its card", async () => {
    const { front } = await openRoom();
    const url = `${front.url}/agents/far`;
    // Not by the client, which keeps a card for as long as the server says.
    const served = async () => fieldsOf(await (await fetch(`${url}/.well-known/agent-card.json`)).json()).name;
    await expect.poll(served).toBe("Helper of the room");
    const far = await connect(url);
    expect(far.card.skills.map(({ id }) => id)).toEqual(["poem"]);
    const states: string[] = [];
    for await (const { event } of far.stream("rain")) {
      if ("statusUpdate" in event) states.push(event.statusUpdate.status.state);
    }
    expect(states.at(-1)).toBe("TASK_STATE_COMPLETED");
    expect(artifactText(await far.send("rain"))).toBe("COMPLETED: A poem: rain, hop 1");
  });

  it("is asked and answered, and cancelled, through every version of A2A", async () => {
    const { front } = await openRoom();
    for (const version of ["1.0", "0.3"]) {
      const far = await connect(`${front.url}/agents/far`, { version });
      const asked = (await far.send("Book")) as { readonly task: Task };
      expect(asked.task.status).toMatchObject({
        state: "TASK_STATE_INPUT_REQUIRED",
        message: { parts: [{ text: "When?" }] },
      });
      const answer = { message: { taskId: asked.task.id, parts: [{ text: "Now" }] } };
      expect(artifactText(await far.send(answer))).toBe("COMPLETED: A poem: Now, hop 1");
      let id = "";
      for await (const { event } of far.stream("Wait")) {
        if ("task" in event) id = event.task.id;
        if ("statusUpdate" in event && event.statusUpdate.status.state === "TASK_STATE_WORKING") break;
      }
      expect((await far.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    }
  });

  it("is a step of a workflow", async () => {
    const { front } = await openRoom();
    const chain = await connect(`${front.url}/agents/chain`);
    expect(artifactText(await chain.send("rain"))).toContain("A poem: About rain, hop 1");
  });

  it("is called by the library, over an account of its own", async () => {
    const { ircd } = await openRoom();
    const account = { host: "127.0.0.1", port: ircd.port, nick: "me", channels: ["#agents"] };
    const agent = await connect("a2a-lite:irc/#agents#helper", { channels: [{ irc: account }] });
    closing.push(() => agent.close());
    expect(agent.card).toMatchObject({ name: "Helper of the room", skills: [{ id: "poem" }] });
    expect(artifactText(await agent.send("rain"))).toBe("COMPLETED: A poem: rain, hop 0");
    const missing = await connect("a2a-lite:irc/#agents#no-one", {
      channels: [{ irc: { ...account, nick: "you" } }],
      timeoutMs: 1_000,
    });
    closing.push(() => missing.close());
    await expect(missing.send("Hello?")).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "no-one in #agents on irc did not answer within 1 s.",
    });
  });
});

describe.runIf(hasServer("mosquitto"))("a server that is killed while a participant works for it", () => {
  async function openServer(broker: ChatServer) {
    const server = new ServedFolder({
      "dragoman.yaml": `
store: sqlite:data.db
agents: { far: { remote: 'a2a-lite:mqtt/room#helper' } }
channels: [{ mqtt: { url: 'mqtt://127.0.0.1:${broker.port}', name: front, rooms: [room] }, agent: far }]
`,
    });
    await server.start();
    return server;
  }

  class RawPeer {
    readonly #channel: Channel;
    readonly posts: Post[] = [];

    constructor(channel: Channel) {
      this.#channel = channel;
      void (async () => {
        for await (const post of channel.posts) {
          channel.acknowledge?.(post);
          this.posts.push(post);
        }
      })();
    }

    static async join(broker: ChatServer): Promise<RawPeer> {
      const settings = mqtt.settings.parse({ url: `mqtt://127.0.0.1:${broker.port}`, name: "helper", rooms: ["room"] });
      const options = { cursors: new Map(), signal: new AbortController().signal };
      const channel = await mqtt.open(settings, options, SUITE_TOOLS);
      closing.push(() => channel.close());
      return new RawPeer(channel);
    }

    tasks(): readonly string[] {
      return this.posts.flatMap(({ text }) => /\[A2A:task id=(\S+)/.exec(text)?.[1] ?? []);
    }

    say(text: string): Promise<unknown> {
      return this.#channel.post({ room: "room", text });
    }
  }

  it.each(["before", "after"])("continues the task when it is back, answered %s that", async (when) => {
    const broker = await startMosquitto();
    closing.push(() => broker.close());
    const peer = await RawPeer.join(broker);
    const server = await openServer(broker);
    const { id } = await server.send("far", "Write.", { configuration: { returnImmediately: true } });
    await expect.poll(() => peer.tasks()).toHaveLength(1);
    const [task] = peer.tasks();
    await peer.say(`[A2A:ack task=${task}]`);
    await peer.say(`[A2A:status task=${task} state=working]\nThinking.`);
    const stateOf = async () => {
      const { result } = await server.post("far", "GetTask", { id });
      return (result as Task).status.state;
    };
    await expect.poll(stateOf).toBe("TASK_STATE_WORKING");
    await server.stop();
    if (when === "before") await peer.say(`[A2A:result task=${task} state=completed]\nA poem.`);
    await server.start();
    if (when === "after") {
      await server.logged(({ msg }) => msg.startsWith("Connected to "));
      await peer.say(`[A2A:result task=${task} state=completed]\nA poem.`);
    }
    await expect.poll(stateOf).toBe("TASK_STATE_COMPLETED");
    const { result } = await server.post("far", "GetTask", { id });
    expect((result as Task).artifacts).toMatchObject([{ parts: [{ text: "A poem." }] }]);
    expect(peer.tasks()).toHaveLength(1);
  });
});
