/** Connections that only one node can have: those it dials, and those of agents that dialled it. */
import { describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import { createSimulator, describeViolation, seededRandom } from "../../src/features/xiaoyi/simulator/index.ts";
import { defineAgent } from "../../src/index.ts";
import { RAW_NETWORKS } from "../channels/raw-peers.ts";
import { type Credentials, RawAgent } from "../dial-in/raw-agent.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { closeLater } from "../support/lifecycle.ts";
import { userMessage } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";
import { CLUSTER_STORES, Cluster, type Node } from "./nodes.ts";

const until = (condition: () => Promise<boolean> | boolean) => expect.poll(condition, { interval: 20 }).toBe(true);

/** Answers when the test lets it, on whichever node it runs. */
function createSlowAgent() {
  const runs: string[] = [];
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const agent = (node: string) =>
    defineAgent({
      name: "Slow",
      description: "Answers when it is let.",
      onCrash: "resume",
      async *run(turn) {
        runs.push(`${node}: ${turn.text}`);
        yield turn.working();
        if (turn.text.startsWith("slow")) {
          const aborted = new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
          await Promise.race([opened, aborted]);
        }
        yield turn.artifact({ name: "answer", text: `${turn.text}!` });
      },
    });
  return { runs, agent, open: () => open() };
}

describe.each(CLUSTER_STORES)("nodes on $name", (spec) => {
  describe("a link to Xiaoyi", () => {
    async function start(leaseMs = 60_000) {
      const slow = createSlowAgent();
      const simulator = await createSimulator({ clock: systemClock, random: seededRandom(16) });
      closeLater(() => simulator.close());
      const connected: string[] = [];
      simulator.subscribe((event) => {
        if (event.kind === "connection") connected.push(event.connection.kind);
      });
      const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
      const [url = ""] = simulator.linkUrls;
      const reconnect = { baseMs: 4, capMs: 16, resetAfterMs: 0 };
      const xiaoyi = { links: [{ agent: "slow", agentId, ak, sk, url, reconnect }] };
      const cluster = new Cluster(HTTP_BINDINGS[0], spec);
      const startNode = (name: string) =>
        cluster.start({ agents: { slow: slow.agent(name) }, xiaoyi, times: { leaseMs, drainMs: 0 } });
      const here = await startNode("here");
      await simulator.ready();
      const there = await startNode("there");
      return { ...slow, simulator, connected, here, there };
    }

    const connectionsOf = async (node: Node) => JSON.parse((await node.read("/readyz")).text).connections;

    it("is opened by one node, which /readyz and /metrics show", async () => {
      const { here, there, connected } = await start();
      expect(await connectionsOf(here)).toEqual({ "xiaoyi-link": { held: 1, standby: 0 } });
      expect(await connectionsOf(there)).toEqual({ "xiaoyi-link": { held: 0, standby: 1 } });
      expect((await here.read("/metrics")).text).toMatch(/^dragoman_xiaoyi_links_standby 0$/m);
      const metrics = (await there.read("/metrics")).text;
      expect(metrics).toMatch(/^dragoman_xiaoyi_links_standby 1$/m);
      expect(metrics).toMatch(/^dragoman_xiaoyi_links_up 0$/m);
      expect(connected).toEqual(["connected", "ready"]);
    });

    it("moves to another when its node ends, which answers what the phone still waits for", async () => {
      const { here, there, simulator, connected, runs, open } = await start();
      const quick = simulator.phone.say("hello");
      await quick.waitUntilSettled();
      expect(quick.screen().text).toBe("hello!");
      const task = simulator.phone.say("slow one");
      await until(() => runs.includes("here: slow one"));
      await here.server.close();
      await until(async () => (await connectionsOf(there))["xiaoyi-link"].held === 1);
      await simulator.ready();
      expect(connected.filter((kind) => kind === "connected")).toHaveLength(2);
      open();
      await task.waitUntilSettled();
      expect(task.screen().text).toBe("slow one!");
      expect(runs).toEqual(["here: hello", "here: slow one", "there: slow one"]);
      const next = simulator.phone.say("next");
      await next.waitUntilSettled();
      expect(next.screen().text).toBe("next!");
      expect(simulator.violations.map(describeViolation)).toEqual([]);
    });

    it("is closed by a node that is cut off from the store, opened by another, and may come back", async () => {
      const { here, there, simulator, connected } = await start(3_000);
      here.access.leave();
      await until(async () => (await connectionsOf(there))["xiaoyi-link"].held === 1);
      await simulator.ready();
      // One after the other: the platform had to throw nobody out.
      expect(connected).toEqual(["connected", "ready", "closed", "connected", "ready"]);
      here.access.comeBack();
      await until(async () => (await here.read("/readyz")).status === 200);
      expect(await connectionsOf(here)).toEqual({ "xiaoyi-link": { held: 0, standby: 1 } });
      await there.server.close();
      await until(async () => (await connectionsOf(here))["xiaoyi-link"].held === 1);
      await simulator.ready();
      const task = simulator.phone.say("again");
      await task.waitUntilSettled();
      expect(task.screen().text).toBe("again!");
    });
  });

  describe.each(RAW_NETWORKS.filter(({ isAvailable }) => isAvailable))("a channel of $name", (network) => {
    async function start(leaseMs = 60_000) {
      const slow = createSlowAgent();
      const room = await network.start();
      const person = await room.join("person");
      const channels = [{ ...room.settings("agent"), agent: "slow", allowPeers: [room.idOf("person")] }];
      const cluster = new Cluster(HTTP_BINDINGS[0], spec);
      const startNode = (name: string) =>
        cluster.start({ agents: { slow: slow.agent(name) }, channels, times: { leaseMs, drainMs: 0 } });
      const isConnected = async (node: Node) =>
        /^dragoman_a2a_lite_connections_up 1$/m.test((await node.read("/metrics")).text);
      const here = await startNode("here");
      await until(() => isConnected(here));
      const there = await startNode("there");
      return { ...slow, person, isConnected, here, there };
    }

    it("is connected by one node; when that ends another takes it over, and finishes and answers the task in the room", async () => {
      const { here, there, person, isConnected, runs, open } = await start();
      await person.say("[A2A:task id=one to=agent] quick");
      await person.next("agent", /\[A2A:result task=one state=completed\b/);
      await person.say("[A2A:task id=two to=agent] slow");
      await until(() => runs.includes("here: slow"));
      expect(await isConnected(there)).toBe(false);
      await here.server.close();
      await until(() => isConnected(there));
      open();
      const result = await person.next("agent", /\[A2A:result task=two state=completed\b/);
      expect(result.text).toContain("slow!");
      expect(runs).toEqual(["here: quick", "here: slow", "there: slow"]);
      await person.say("[A2A:task id=three to=agent] last");
      await person.next("agent", /\[A2A:result task=three state=completed\b/);
      const results = person.posts.filter(({ text }) => text.includes("[A2A:result"));
      expect(results.map(({ text }) => /task=(\w+)/.exec(text)?.[1])).toEqual(["one", "two", "three"]);
    });

    it("is connected by each node that has an account of its own for the agent, and each answers for itself", async () => {
      const room = await network.start();
      const person = await room.join("person");
      const cluster = new Cluster(HTTP_BINDINGS[0], spec);
      for (const account of ["agent", "helper"]) {
        const channels = [{ ...room.settings(account), agent: "echo", allowPeers: [room.idOf("person")] }];
        const node = await cluster.start({ agents: { echo: createEchoAgent() }, channels });
        await until(async () => /^dragoman_a2a_lite_connections_up 1$/m.test((await node.read("/metrics")).text));
        await person.say(`[A2A:task id=of-${account} to=${account}] hello`);
        await person.next(account, new RegExp(`\\[A2A:result task=of-${account} state=completed\\b`));
      }
    });

    // The network makes no difference here.
    if (network.name !== "irc") return;
    it("is left by a node that is cut off from the store, and taken over", async () => {
      const { here, there, person, isConnected, runs, open } = await start(3_000);
      await person.say("[A2A:task id=one to=agent] slow");
      await until(() => runs.includes("here: slow"));
      here.access.leave();
      await until(() => isConnected(there));
      expect(await isConnected(here)).toBe(false);
      open();
      await person.next("agent", /\[A2A:result task=one state=completed\b/);
      here.access.comeBack();
      await until(async () => (await here.read("/readyz")).status === 200);
      await person.say("[A2A:task id=two to=agent] quick");
      await person.next("agent", /\[A2A:result task=two state=completed\b/);
      expect(await isConnected(here)).toBe(false);
      expect(person.posts.filter(({ text }) => text.includes("[A2A:result"))).toHaveLength(2);
    });
  });

  describe("an agent that dialled one node", () => {
    const HELPER: Credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };

    async function start() {
      const cluster = new Cluster(HTTP_BINDINGS[0], spec);
      const helper = () => createDialInAgent({ name: "Helper", description: "Dials in.", ...HELPER });
      const [here, there] = [
        await cluster.start({ agents: { helper: helper() } }),
        await cluster.start({ agents: { helper: helper() } }),
      ];
      const agent = await RawAgent.dial(here.server.url, HELPER);
      closeLater(() => agent.socket.terminate());
      // Known to be connected once it was called there.
      const first = here.client("helper").task("first");
      agent.text(await agent.next(), "first!", { final: true });
      await first;
      return { here, there, agent };
    }

    it("is called through any other, and asks and is answered there", async () => {
      const { here, there, agent } = await start();
      const sent = there.client("helper").task("Book a table");
      const request = await agent.next();
      expect(request.params.message.parts).toEqual([{ kind: "text", text: "Book a table" }]);
      agent.status(request, "input-required", { text: "For how many?" });
      const asked = await sent;
      expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const answered = there.client("helper").task(userMessage("Four", { taskId: asked.id }));
      agent.text(await agent.next(), "Booked.", { final: true });
      const done = await answered;
      expect([done.status.state, textOf(done.artifacts?.[0]?.parts ?? [])]).toEqual([
        "TASK_STATE_COMPLETED",
        "Booked.",
      ]);
      expect(await here.client("helper").get(done.id)).toEqual(done);
    });

    it("is streamed from and cancelled through any other", async () => {
      const { there, agent } = await start();
      const stream = await there.client("helper").stream("Tell me");
      const { id } = await stream.task();
      const request = await agent.next();
      agent.text(request, "One", { id: "x" });
      let shown = "";
      while (shown === "") shown = textOf((await stream.event()).artifactUpdate?.artifact.parts ?? []);
      expect(shown).toBe("One");
      const cancelled = there.client("helper").cancel(id);
      const cancel = await agent.next();
      expect(cancel.method).toBe("tasks/cancel");
      agent.status(request, "canceled", { final: true });
      expect((await cancelled).status.state).toBe("TASK_STATE_CANCELED");
    });
  });
});
