import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { openStream, rpcFrame, startFakeAgent, task } from "../../src/core/client/testing/fake-agent.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createDeferred } from "../../src/core/wire/link.ts";
import { waitForAbort } from "../../src/features/writers/tck.ts";
import {
  createSimulator,
  type Notification,
  type Simulator,
  type SimulatorOptions,
  seededRandom,
} from "../../src/features/xiaoyi/simulator/index.ts";
import { defineAgent, type ServeOptions } from "../../src/index.ts";
import { startGateway, untilCard } from "../support/gateway.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";

/** Says back what it hears, when it is let if it is to wait, and what files it got. */
function parrot(gate = createDeferred()) {
  const agent = defineAgent({
    name: "Parrot",
    description: "Says back what it hears.",
    version: "1.0.0",
    onCrash: "resume",
    inputModes: ["*/*"],
    skills: [{ id: "say", name: "Say", description: "Says it back.", tags: ["test"] }],
    async *run(turn) {
      yield turn.working();
      if (turn.text.startsWith("later")) await Promise.race([gate.promise, waitForAbort(turn.signal)]);
      if (turn.text === "later ask") return yield turn.inputRequired("Which one?");
      const files = turn.parts.filter((part) => "url" in part || part.filename !== undefined);
      if (files.length > 0) yield turn.artifact({ name: "files", parts: files });
      yield turn.artifact({ name: "answer", text: turn.text.repeat(turn.text.startsWith("later long") ? 300 : 1) });
    },
  });
  return { agent, gate };
}

const RECONNECT = { baseMs: 4, capMs: 16, resetAfterMs: 0 };

async function simulated(options: Partial<SimulatorOptions> = {}): Promise<Simulator> {
  const random = seededRandom(20_261_115);
  const simulator = await createSimulator({ clock: systemClock, random, pushSpacingMs: 0, ...options });
  closeLater(() => simulator.close());
  return simulator;
}

/** Notifications to one device are 15 s apart whatever is configured; here everyone has but one. */
function pushOf({ agent: { apiId = "" }, webhookUrl: url }: Simulator) {
  return { apiId, url, spacingMs: 0 };
}

const served = (options: ServeOptions) => startServer({ grpcPort: false, times: { drainMs: 50 }, ...options });

async function linked(more: Partial<ServeOptions> = {}, gate = createDeferred()) {
  const simulator = await simulated();
  const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
  const [url = ""] = simulator.linkUrls;
  const link = { agent: "parrot", agentId, ak, sk, url, reconnect: RECONNECT, push: pushOf(simulator) };
  const options = {
    agents: { parrot: parrot(gate).agent },
    xiaoyi: { links: [link], files: { allowHosts: ["127.0.0.1"] } },
    ...more,
  };
  const server = await served(options);
  await simulator.ready();
  simulator.phone.variables = "object";
  return { gate, server, simulator, options };
}

/** The next notification that the phone shows. */
function notified(simulator: Simulator): Promise<Notification> {
  return new Promise((resolve) => {
    const stop = simulator.subscribe((event) => {
      if (event.kind !== "notification") return;
      stop();
      resolve(event.notification);
    });
  });
}

describe("a user on the link", () => {
  it("who asks something else meanwhile is notified of the first answer, and taps the notification", async () => {
    const { gate, simulator } = await linked();
    const news = notified(simulator);
    const first = simulator.phone.say("later long");
    await first.waitUntil(({ shown }) => shown > 0);
    const second = simulator.phone.say("two");
    await second.waitUntilSettled();
    expect(second.screen().text).toBe("two");
    gate.resolve();
    const notification = await news;
    expect(notification).toMatchObject({ cut: false, text: undefined, pushDataId: first.id });
    expect(notification.title).toMatch(/^later longlater long.*…$/);
    const tapped = simulator.phone.tap(notification);
    await tapped?.waitUntilSettled();
    expect(tapped?.ending).toBe("final");
    expect(tapped?.screen().text).toBe("later long".repeat(300));
    expect(simulator.violations).toEqual([]);
  });

  it("who is notified by one process of what another one was asked", async () => {
    const folder = createFolder();
    const { gate, options, server, simulator } = await linked({ store: `sqlite:${folder}/data.db` });
    const first = simulator.phone.say("later one");
    await first.waitUntil(({ shown }) => shown > 0);
    await simulator.phone.say("two").waitUntilSettled();
    await server.close();
    expect((await readdir(folder)).filter((name) => name.endsWith(".json"))).toEqual([]);
    const news = notified(simulator);
    gate.resolve();
    await served(options);
    expect(await news).toMatchObject({ text: "later one" });
    expect(simulator.violations).toEqual([]);
  });

  it("who sends files has them read as text, or kept for the agent", async () => {
    const folder = createFolder();
    const { server, simulator } = await linked({ store: `sqlite:${folder}/data.db` });
    const photo = Buffer.from([0xff, 0xd8, 0xff, 0x00]);
    const task = simulator.phone.say("look: ", [
      { name: "../../notes.txt", mimeType: "txt", bytes: Buffer.from("\ufeff早上好") },
      { name: "photo.jpg", mimeType: "jpeg", bytes: photo },
    ]);
    await task.waitUntilSettled();
    const read = await (await connect(server.url)).get(task.id);
    const [files, answer] = read.artifacts ?? [];
    expect(answer?.parts).toEqual([{ text: "look: \n早上好" }]);
    const [note, kept] = files?.parts ?? [];
    expect(note).toEqual({ text: "早上好", filename: "notes.txt" });
    expect(kept).toMatchObject({ filename: "photo.jpg", mediaType: "image/jpeg" });
    const url = kept !== undefined && "url" in kept ? kept.url : "";
    const path = fileURLToPath(url);
    expect(path.startsWith(join(folder, "files"))).toBe(true);
    expect(await readFile(path)).toEqual(photo);
    expect(simulator.violations).toEqual([]);
  });
});

it.each([
  ["a remote agent", "far"],
  ["a workflow with a step at a remote agent", "flow"],
])("a user who sends a file to %s has its bytes sent there, not a path of this machine", async (_, agent) => {
  const fake = await startFakeAgent(
    (_, response) => {
      openStream(response);
      response.end(rpcFrame({ task: task() }));
    },
    { card: { defaultInputModes: ["*/*"] } },
  );
  closeLater(() => fake[Symbol.asyncDispose]());
  const simulator = await simulated();
  const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
  const [url = ""] = simulator.linkUrls;
  const xiaoyi = { links: [{ agent, agentId, ak, sk, url }], files: { allowHosts: ["127.0.0.1"] } };
  const workflow = join(createFolder(), "flow.yaml");
  await writeFile(workflow, "name: flow\ndescription: Looks.\nsteps: { look: { agent: far } }\n");
  const gateway = await startGateway({ far: { remote: fake.url }, flow: { workflow } }, { xiaoyi });
  await untilCard(gateway, "far", ({ name }) => name === "Fake");
  await simulator.ready();
  const bytes = Buffer.from([0xff, 0xd8, 0xff, 0x00]);
  await simulator.phone.say("look", [{ name: "photo.jpg", mimeType: "jpeg", bytes }]).waitUntilSettled();
  const message = fake.requests[0]?.rpc.params?.message as { parts: object[] };
  expect(message.parts).toEqual([
    { text: "look" },
    { raw: bytes.toString("base64"), filename: "photo.jpg", mediaType: "image/jpeg" },
  ]);
});

describe("a user of the platform that calls over HTTP", () => {
  const KEY = "key-of-the-platform";

  async function called() {
    const simulator = await simulated();
    const { accessKey: ak, secretKey: sk } = simulator.agent;
    const { agent, gate } = parrot();
    const push = { ...pushOf(simulator), ak, sk };
    const xiaoyi = { http: [{ agent: "parrot", apiKey: KEY, push }] };
    const server = await served({ agents: { parrot: agent }, xiaoyi });
    return { gate, server, simulator };
  }

  interface Words {
    readonly url: string;
    readonly taskId: string;
    readonly parts: readonly object[];
    readonly signal?: AbortSignal;
  }

  function say({ parts, signal, taskId, url }: Words): Promise<Response> {
    const params = { id: taskId, sessionId: "session", message: { role: "user", parts } };
    return fetch(`${url}/agents/parrot/agent/message`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: "1", method: "message/stream", params }),
      ...(signal && { signal }),
    });
  }

  const metricsOf = async (url: string) => (await fetch(`${url}/metrics`)).text();

  /** Says something and does not stay for the answer. */
  async function sayAndLeave(url: string, pushId: string, text: string): Promise<void> {
    const dropping = new AbortController();
    const variables = { kind: "data", data: { variables: { systemVariables: { push_id: pushId } } } };
    const parts = [variables, { kind: "text", text }];
    const { body } = await say({ url, taskId: "session&1", parts, signal: dropping.signal });
    await body?.getReader().read();
    dropping.abort();
    while (!(await metricsOf(url)).includes("dragoman_streams_open 0\n"));
  }

  it("whose stream is dropped is notified of a question, and answers it", async () => {
    const { gate, server, simulator } = await called();
    const news = notified(simulator);
    await sayAndLeave(server.url, simulator.phone.pushId, "later ask");
    gate.resolve();
    expect(await news).toMatchObject({ title: "Which one?", text: "Which one?" });
    const isCounted = async () => (await metricsOf(server.url)).includes("dragoman_phone_notices_sent_total 1\n");
    await expect.poll(isCounted).toBe(true);
    const answered = await say({
      url: server.url,
      taskId: "session&2",
      parts: [{ kind: "text", text: "This one." }],
    });
    expect(await answered.text()).toContain("This one.");
    expect(await (await connect(`${server.url}/agents/parrot`)).get("session&1")).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
    });
    expect(simulator.violations).toEqual([]);
  });

  it("whose stream is dropped is notified, and taps the notification", async () => {
    const { gate, server, simulator } = await called();
    const news = notified(simulator);
    await sayAndLeave(server.url, simulator.phone.pushId, "later long");
    gate.resolve();
    const { pushDataId } = await news;
    expect(pushDataId).toBe("session&1");
    const trigger = { header: { namespace: "Common", name: "Trigger" }, payload: { dataMap: { pushDataId } } };
    const tap = await say({
      url: server.url,
      taskId: "session&2",
      parts: [{ kind: "data", data: { events: [trigger] } }],
    });
    const [frame, ...rest] = (await tap.text()).trim().split("\n\n");
    expect(rest).toEqual([]);
    expect(JSON.parse(frame?.slice("data: ".length) ?? "")).toMatchObject({
      result: {
        taskId: "session&2",
        final: true,
        artifact: { parts: [{ kind: "text", text: "later long".repeat(300) }] },
      },
    });
    expect(simulator.violations).toEqual([]);
  });
});
