/** Both halves of the link at once: an agent that one server serves by dialling another, which serves it to everybody. */
import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { data } from "../../src/core/client/parts.ts";
import { xiaoyi } from "../../src/features/xiaoyi/index.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { startServer } from "../support/lifecycle.ts";
import { statesOf, userMessage, WireClient } from "../support/wire-client.ts";
import { textOf, type WireTask } from "../support/wire-types.ts";
import { linkUrl } from "./raw-agent.ts";

const CREDENTIALS = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };
const LONG = Array.from({ length: 2_000 }, (_, at) => `word ${at} 字 `).join("");

let stopped: string[] = [];

/** Does what it is told. */
const actor = defineAgent({
  name: "Actor",
  description: "Does what it is told.",
  async *run(turn) {
    switch (turn.text) {
      case "stream":
        yield turn.working("Thinking");
        yield* turn.stream("notes", ["One", ", two", ", three."]);
        return;
      case "long":
        yield turn.artifact({ name: "long", text: LONG });
        return;
      case "ask":
        yield turn.inputRequired("For how many?");
        return;
      case "show":
        yield turn.artifact({ name: "card", parts: [xiaoyi.deeplink({ url: "https://a.example/", appName: "A" })] });
        yield turn.artifact({ name: "numbers", parts: [data({ n: 1 })] });
        return;
      case "wait":
        yield turn.artifact({ name: "first", text: "So far" });
        await new Promise((resolve) => {
          turn.signal.addEventListener("abort", resolve);
        });
        stopped.push(turn.task.id);
        return;
      case "fail":
        yield turn.failed("Out of paper.");
        return;
      default:
        yield turn.artifact({ name: "heard", text: `You said ${turn.text}, after ${turn.history.length} messages.` });
    }
  },
});

async function loop(render: "phone" | "spec"): Promise<WireClient> {
  stopped = [];
  const far = createDialInAgent({ ...CREDENTIALS, name: "Far", description: "Elsewhere." });
  const front = await startServer({ grpcPort: false, agents: { far } });
  const link = { ...CREDENTIALS, agent: "actor", url: linkUrl(front.url), render };
  await startServer({ grpcPort: false, agents: { actor }, xiaoyi: { links: [link] } });
  return new WireClient(HTTP_BINDINGS[0], front.url);
}

/** All texts, the newest last. */
const answerOf = (task: WireTask) => (task.artifacts ?? []).map(({ parts }) => textOf(parts)).join(" | ");

describe.each(["phone", "spec"] as const)("an agent that renders for the %s", (render) => {
  it("streams, and its text is one artifact", async () => {
    const client = await loop(render);
    const events = await (await client.stream("stream")).rest();
    expect(statesOf(events).at(-1)).toBe("COMPLETED");
    const said = events.flatMap(({ event }) => event.statusUpdate?.status.message?.parts ?? []);
    expect(said.map(({ text }) => text)).toEqual(["Thinking"]);
    const task = await client.get(events[0]?.event.task?.id ?? "");
    expect(task.artifacts).toHaveLength(1);
    expect(answerOf(task)).toBe("One, two, three.");
  });

  it("sends long texts in full", async () => {
    const client = await loop(render);
    expect(answerOf(await client.task("long"))).toBe(LONG);
  });

  it("asks, and is answered in the same task", async () => {
    const client = await loop(render);
    const { contextId, id: taskId, status } = await client.task("ask");
    expect(status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "For how many?" }] },
    });
    const done = await client.task(userMessage("four", { taskId, contextId }));
    expect([done.id, done.status.state]).toEqual([taskId, "TASK_STATE_COMPLETED"]);
    expect(answerOf(done)).toContain("You said four, after 2 messages.");
  });

  it("hears of a cancellation", async () => {
    const client = await loop(render);
    const stream = await client.stream("wait");
    const { id } = await stream.task();
    for (let event = await stream.event(); event.artifactUpdate === undefined; ) event = await stream.event();
    const task = await client.cancel(id);
    expect([task.status.state, answerOf(task)]).toEqual(["TASK_STATE_CANCELED", "So far"]);
    expect(stopped).toHaveLength(1);
  });

  it("fails with its reason", async () => {
    const client = await loop(render);
    const task = await client.task("fail");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task)).toContain("Out of paper.");
  });
});

it("cards and data come through, and cards have text for those who cannot show them", async () => {
  const client = await loop("spec");
  const { artifacts = [] } = await client.task("show");
  expect(artifacts.map(({ parts }) => parts)).toMatchObject([
    [{ text: "A: https://a.example/", metadata: expect.anything() }],
    [{ data: { n: 1 } }],
  ]);
});

it("messages of one conversation follow each other, whichever is quicker", async () => {
  const client = await loop("phone");
  const contextId = "talk";
  const sent = ["a", "b", "c", "d"].map((text) => client.task(userMessage(text, { contextId })));
  const answers = (await Promise.all(sent)).map(answerOf);
  expect(answers).toEqual(["a", "b", "c", "d"].map((text) => `You said ${text}, after 0 messages.`));
});
