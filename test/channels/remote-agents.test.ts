/** One server calls an agent of another one in a chat room: over platforms that enforce their rules, in every dialect. */

import { describe, expect, it } from "vitest";
import { connect, type RemoteAgent } from "../../src/client.ts";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { fieldsOf } from "../../src/core/model/json.ts";
import type { Task } from "../../src/core/model/task.ts";
import { SEES_BOTS, startFeishuServer } from "../../src/features/chat/networks/testing/feishu-server.ts";
import { startMatrixServer } from "../../src/features/chat/networks/testing/matrix-server.ts";
import { createChatPeerAgent } from "../../src/features/chat/server/chat-peer-agent.ts";
import type { ChannelEntryOptions } from "../../src/features/chat/server/entries.ts";
import { closeLater } from "../support/lifecycle.ts";
import { startInRoom } from "./stage.ts";
import { REPORT, translator } from "./translator.ts";

const KEYS = { ak: "access-key", sk: "secret-key" };

interface Room {
  readonly address: string;
  /** Of the called agent and of the caller. */
  readonly entries: readonly [Omit<ChannelEntryOptions, "agent">, Omit<ChannelEntryOptions, "agent">];
  /** Texts of all posts, in order. */
  texts(): readonly string[];
}

async function openMatrix(): Promise<Room> {
  const server = await startMatrixServer({ rate: { burst: 1_000, perSecond: 1_000 } });
  closeLater(() => server.close());
  const room = "!team:sim";
  const settings = (name: string) => ({
    matrix: { homeserver: server.url, token: server.register(name), rooms: [room] },
  });
  const [agent, caller] = [settings("agent"), settings("caller")];
  server.createRoom({ id: room, members: ["@agent:sim", "@caller:sim", "@person:sim"] });
  return {
    address: `a2a-lite:matrix/${room}#@agent:sim`,
    entries: [{ ...agent, allowPeers: ["@caller:sim"], allowBots: true }, caller],
    texts: () => server.messages.map(({ content }) => String(content.body)),
  };
}

async function openFeishu(): Promise<Room> {
  const server = await startFeishuServer();
  closeLater(() => server.close());
  const app = (name: string, digit: string) => ({ appId: `cli_${digit.repeat(16)}`, appSecret: `secret of ${name}` });
  const [agent, caller] = [app("agent", "a"), app("caller", "b")];
  server.addApp({ id: agent.appId, secret: agent.appSecret, name: "Agent", scopes: [SEES_BOTS] });
  server.addApp({ id: caller.appId, secret: caller.appSecret, name: "Caller", scopes: [SEES_BOTS] });
  server.addChat("oc_group", [agent.appId, caller.appId, "Ann"]);
  const common = { domain: server.url, rooms: ["oc_group"] };
  return {
    // Every app knows others by ids of its own.
    address: `a2a-lite:feishu/oc_group#${server.openId(caller.appId, agent.appId)}`,
    entries: [
      {
        feishu: { ...agent, ...common },
        allowPeers: [server.openId(agent.appId, caller.appId)],
        allowBots: "mentions",
      },
      { feishu: { ...caller, ...common }, allowBots: "mentions" },
    ],
    texts: () => server.messages.map(({ content }) => content),
  };
}

async function startBoth({ address, entries: [agent, caller] }: Room): Promise<string> {
  await startInRoom({ agents: { translator }, channels: [{ ...agent, agent: "translator" }] });
  const { url } = await startInRoom({
    agents: { echo: createEchoAgent(), far: createChatPeerAgent("far", address, {}) },
    channels: [{ ...caller, agent: "echo" }],
    xiaoyi: { http: [{ agent: "far", ...KEYS }] },
  });
  return `${url}/agents/far`;
}

/** `file`: what of it the dialect carries. */
async function work(far: RemoteAgent, file = REPORT): Promise<void> {
  const asked = taskOf(await far.send("Translate the report."));
  expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(JSON.stringify(asked.status.message)).toContain("Into which language?");
  const answer = { taskId: asked.id, contextId: asked.contextId, parts: [{ text: "French" }] };
  const answered = taskOf(await far.send({ message: answer }));
  expect(answered.status.state).toBe("TASK_STATE_COMPLETED");
  expect(textOf(answered)).toContain("In French:");
  expect(textOf(answered)).toContain(file);
  let id = "";
  for await (const { event } of far.stream("Wait")) {
    // Some dialects send the whole task with every state.
    const task = "task" in event ? event.task : undefined;
    const update = "statusUpdate" in event ? event.statusUpdate : undefined;
    id = task?.id ?? update?.taskId ?? id;
    if ((task ?? update)?.status.state === "TASK_STATE_WORKING") break;
  }
  expect((await far.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
}

describe.each([
  { name: "Matrix", open: openMatrix },
  { name: "Feishu", open: openFeishu },
])("an agent in a room of $name", ({ open }) => {
  it("is found, asked, answered and cancelled by another server", async () => {
    const room = await open();
    const url = await startBoth(room);
    const served = async () => fieldsOf(await (await fetch(`${url}/.well-known/agent-card.json`)).json()).name;
    await expect.poll(served, { interval: 20 }).toBe("Translator");
    const far = await connect(url);
    expect(far.card.skills.map(({ id }) => id)).toEqual(["translate"]);
    await work(far);
    const markers = room.texts().flatMap((text) => /\[A2A:(\w+)[^\]]*?(?: state=([\w-]+))?/.exec(text)?.[1] ?? []);
    expect(markers.filter((type) => type !== "status" && type !== "ack")).toEqual([
      ...["discover", "card", "task", "task", "result"],
      ...["task", "cancel", "result"],
    ]);
  });
});

describe("an agent in a room", () => {
  it.each(["a2a-v1", "a2a-v03", "a2a-v01", "tasks-rest"] as const)("is called over %s", async (dialect) => {
    await work(await connect(await startBoth(await openMatrix()), { dialect }));
  });

  it("is called over xiaoyi-http", async () => {
    const url = await startBoth(await openMatrix());
    // Phones get files by their URLs, which this one does not have.
    await work(await connect(`${url}/agent/message`, { dialect: "xiaoyi-http", keys: KEYS }), "report.txt");
  });
});

function taskOf(outcome: Awaited<ReturnType<RemoteAgent["send"]>>): Task {
  if ("message" in outcome) throw new Error("It answered without a task.");
  return outcome.task;
}

function textOf(task: Task): string {
  return (task.artifacts ?? [])
    .flatMap(({ parts }) => parts)
    .map((part) => ("text" in part ? part.text : "raw" in part ? Buffer.from(part.raw, "base64").toString() : ""))
    .join("\n");
}
