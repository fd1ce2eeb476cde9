/** The article chain of four servers: what its callers see, and what the description of the original says it lacks. */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createDeferred } from "../../src/core/wire/link.ts";
import { CHINESE_GENRES } from "../../src/features/writers/fixtures/genres-chinese.ts";
import { ENGLISH_GENRES } from "../../src/features/writers/fixtures/genres-english.ts";
import { waitForAbort } from "../../src/features/writers/tck.ts";
import { createSimulator, seededRandom } from "../../src/features/xiaoyi/simulator/index.ts";
import { defineAgent } from "../../src/index.ts";
import { Receiver } from "../push/receiver.ts";
import { BINDINGS } from "../support/bindings.ts";
import { closeLater, freePort } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";
import { userMessage, WireClient } from "../support/wire-client.ts";
import {
  KEY,
  postTask,
  restMessage,
  sendRest,
  serveOrchestrator,
  serveWriter,
  startChain,
  TOPICS,
  tasksAt,
  textParts,
  WRITERS,
} from "./chain.ts";

const KEYS = { ak: "access-key", sk: "secret-key" };
const chain = await startChain({ xiaoyi: { http: [{ agent: "article", ...KEYS }] } });
const { orchestrator, writers } = chain;

it.each([...ENGLISH_GENRES.slice(0, 2), ...CHINESE_GENRES.slice(0, 2)])(
  "a text is handed from the outline to the article without a loss, over tasks-rest: $name",
  async ({ kept, text }) => {
    const { artifacts = [] } = await sendRest(orchestrator, textParts(text));
    const [outline, document, summary] = artifacts.map(({ parts }) => parts.map((part) => part.text ?? "").join(""));
    expect(outline?.length).toBeLessThan(text.length / 2);
    for (const paragraph of text.split("\n\n").slice(1)) {
      const line = paragraph.split("\n").at(-1) ?? "";
      if (!/[:：]$/.test(line)) expect(document).toContain(line);
    }
    for (const sentence of kept) expect(summary).toContain(sentence);
  },
);

describe.each(TOPICS)("a topic in the language $language", ({ language, note, topic }) => {
  it("becomes an article over tasks-rest, in one context", async () => {
    const task = await sendRest(orchestrator, textParts(topic));
    expect(task.status.state).toBe("completed");
    expect(task.artifacts?.map(({ name }) => name)).toEqual(["outline", "document", "summary"]);
    const [outline, document, summary] = task.artifacts ?? [];
    expect(outline?.parts[0]).toMatchObject({ type: "data", data: { topic, language, basis: "topic" } });
    expect(document?.parts[0]?.text).toMatch(`# ${topic}\n`);
    expect(summary?.parts[0]?.text).toContain(note);
    const children = await Promise.all(WRITERS.map(async (name) => (await tasksAt(writers[name])).at(-1)));
    expect(children.map((child) => child?.status.state)).toEqual(["completed", "completed", "completed"]);
    expect(new Set(children.map((child) => child?.contextId)).size).toBe(1);
    expect(children[1]?.history?.[0]?.parts).toEqual([...textParts("Write it out."), outline?.parts[0]]);
  });

  it("streams what the writers write, as server-sent events", async () => {
    const { text } = await sendRaw(orchestrator.url, {
      method: "POST",
      path: "/tasks/sendSubscribe",
      headers: { "content-type": "application/json" },
      body: restMessage(textParts(topic)),
    });
    const frames = [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data]) => JSON.parse(data ?? ""));
    const states = frames.flatMap(({ task }) => task?.status.state ?? []);
    expect(states[0]).toBe("submitted");
    expect(states.at(-1)).toBe("completed");
    const artifacts = frames.flatMap(({ artifact }) => artifact?.name ?? []);
    expect([...new Set(artifacts)]).toEqual(["outline", "document", "summary"]);
    expect(artifacts.filter((name) => name === "document").length).toBeGreaterThan(1);
  });

  it.each(BINDINGS)("becomes an article over A2A 1.0: $name", async (binding) => {
    const task = await new WireClient(binding, `${orchestrator.url}/agents/article`).task(topic);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts?.map(({ name }) => name)).toEqual(["outline", "document", "summary"]);
    expect(task.artifacts?.[2]?.parts[0]?.text).toContain(note);
  });

  it("becomes an article on a phone", async () => {
    const simulator = await createSimulator({
      clock: systemClock,
      random: seededRandom(8010),
      http: {
        url: `${orchestrator.url}/agents/article/agent/message`,
        credentials: { kind: "signed", accessKey: KEYS.ak, secretKey: KEYS.sk },
      },
    });
    closeLater(() => simulator.close());
    const task = simulator.phone.say(topic);
    await task.waitUntilSettled();
    expect(task.ending).toBe("final");
    expect(task.screen().text).toContain(`# ${topic}`);
    expect(task.screen().text).toContain(note);
    expect(task.screen().thinking?.text).toContain("步骤“summary”已完成。");
    expect(simulator.violations).toEqual([]);
  });
});

describe("a question of a writer", () => {
  it("becomes the orchestrator's, and the answer reaches the task that asked", async () => {
    const before = (await tasksAt(writers.outline)).length;
    const asked = await sendRest(orchestrator, [{ type: "data", data: {} }]);
    expect(asked.status.state).toBe("input-required");
    expect(asked.status.message?.parts[0]?.text).toContain("What should the outline be about?");
    const done = await sendRest(orchestrator, textParts("Night trains"), { taskId: asked.id });
    expect(done).toMatchObject({ id: asked.id, status: { state: "completed" } });
    expect(done.artifacts?.[0]?.parts[0]?.data).toMatchObject({ topic: "Night trains" });
    const children = (await tasksAt(writers.outline)).slice(before);
    expect(children).toHaveLength(1);
    const said = children[0]?.history?.filter(({ role }) => role === "user").map(({ parts }) => parts[0]);
    expect(said).toEqual([{ type: "data", data: {} }, ...textParts("Night trains")]);
  });
});

describe("the API key of the writers", () => {
  it.each(WRITERS)("is required by the writer of the %s", async (name) => {
    const writer = writers[name];
    const body = restMessage(textParts("Tea"));
    expect((await postTask(writer, body)).status).toBe(401);
    expect((await postTask(writer, body, { "x-api-key": `${KEY}!` })).status).toBe(401);
    expect((await postTask(writer, body, { "x-api-key": KEY })).status).toBe(200);
    const card = await sendRaw(writer.url, { path: "/.well-known/agent.json" });
    expect(card.json.securitySchemes.apiKey).toEqual({ type: "apiKey", in: "header", name: "X-API-Key" });
  });
});

describe("a task that is cancelled", () => {
  it("cancels the writer's", async () => {
    const begun = createDeferred();
    const stopped = createDeferred();
    const slow = defineAgent({
      name: "Slow writer",
      description: "Never finishes.",
      skills: [{ id: "write_document", name: "Write", description: "Writes until it is cancelled." }],
      async *run(turn) {
        yield turn.working();
        begun.resolve();
        await waitForAbort(turn.signal);
        stopped.resolve();
      },
    });
    const slowChain = await startChain({}, { document: slow });
    const client = new WireClient(BINDINGS[0]!, `${slowChain.orchestrator.url}/agents/article`);
    const { id } = await client.start("City bees");
    await begun.promise;
    const { json } = await sendRaw(slowChain.orchestrator.url, { method: "POST", path: `/tasks/${id}/cancel` });
    expect(json.status.state).toBe("canceled");
    await stopped.promise;
    await expect
      .poll(async () => (await tasksAt(slowChain.writers.document)).map(({ status }) => status.state))
      .toEqual(["canceled"]);
    expect(await tasksAt(slowChain.writers.summary)).toEqual([]);
  });
});

describe("a webhook", () => {
  it("is notified of the article", async () => {
    const receiver = await Receiver.start();
    const configuration = { taskPushNotificationConfig: { url: receiver.url("/article") }, returnImmediately: true };
    const client = new WireClient(BINDINGS[0]!, `${orchestrator.url}/agents/article`);
    const { id } = await client.task(userMessage("City bees"), { configuration });
    await receiver.until(() => receiver.taken.some(({ body }) => body.includes("TASK_STATE_COMPLETED")));
    const last = JSON.parse(receiver.taken.at(-1)?.body ?? "");
    expect(last.statusUpdate).toMatchObject({ taskId: id, status: { state: "TASK_STATE_COMPLETED" } });
  });
});

describe("writers that are found by their skills", () => {
  it("may start after the orchestrator", async () => {
    const ports = { outline: await freePort(), document: await freePort(), summary: await freePort() };
    const early = await serveOrchestrator(ports);
    const failed = await sendRest(early, textParts("City bees"));
    expect(failed.status.state).toBe("failed");
    const reason = failed.status.message?.parts[0]?.text;
    expect(reason).toContain('No agent has the skill "generate_outline".');
    expect(reason).toContain(`Upstream http://127.0.0.1:${ports.outline} of agent outline: Connection refused`);
    await Promise.all(WRITERS.map((name) => serveWriter(name, { port: ports[name] })));
    expect((await sendRest(early, textParts("City bees"))).status.state).toBe("completed");
  });

  it("are named by the orchestrator's cards with their skills", async () => {
    const { json } = await sendRaw(orchestrator.url, { path: "/agents/outline/.well-known/agent.json" });
    expect(json.skills[0].id).toBe("generate_outline");
  });
});
