import { describe, expect, it } from "vitest";
import { data, file, text } from "../client/parts.ts";
import { createEchoAgent } from "./builtin.ts";
import { type AgentDefinition, defineAgent } from "./define.ts";
import { runToEnd, turnOf } from "./testing/turns.ts";
import type { AgentTurn } from "./turn.ts";

const minimal = { name: "Note taker", description: "Takes notes." };
const agentOf = (run: AgentDefinition["run"]) => defineAgent({ ...minimal, run });
const eventsOf = async (run: AgentDefinition["run"]) => (await runToEnd(agentOf(run))).events;

describe("defineAgent", () => {
  it("fills in what a card needs", () => {
    const agent = agentOf(() => undefined);
    expect(agent.profile).toEqual({
      name: "Note taker",
      description: "Takes notes.",
      version: "1.0.0",
      skills: [{ id: "note_taker", name: "Note taker", description: "Takes notes.", tags: ["note_taker"] }],
      inputModes: ["text/plain", "application/json"],
      outputModes: ["text/plain", "application/json"],
      streaming: true,
      extensions: [],
    });
    expect(agent).toMatchObject({ onCrash: "fail", concurrency: Number.POSITIVE_INFINITY, timeoutMs: undefined });
  });

  it("keeps what is given", () => {
    const agent = defineAgent({
      ...minimal,
      version: "2.1.0",
      skills: [{ id: "a", name: "A", description: "Does A." }],
      onCrash: "resume",
      concurrency: 3,
      timeout: "1.5s",
      streaming: false,
      provider: { organization: "Example", url: "https://example.com" },
      extended: { skills: [{ id: "b", name: "B", description: "Does B.", tags: ["x"] }] },
      run: () => "done",
    });
    expect(agent).toMatchObject({ onCrash: "resume", concurrency: 3, timeoutMs: 1_500 });
    expect(agent.profile.skills).toEqual([{ id: "a", name: "A", description: "Does A.", tags: ["a"] }]);
    expect(agent.profile.extended).toMatchObject({ skills: [{ tags: ["x"] }] });
    expect(agent.profile).toMatchObject({ version: "2.1.0", streaming: false });
  });

  it.each([
    [{ name: undefined }, /"name"/],
    [{ name: "  " }, /"name"/],
    [{ description: 3 }, /"description"/],
    [{ run: undefined }, /"run"/],
    [{ onCrash: "retry" }, /onCrash "retry"/],
    [{ concurrency: 0 }, /"concurrency"/],
    [{ timeout: "1 minute" }, /timeout "1 minute"/],
    [{ timeout: -1 }, /timeout -1/],
    [{ skills: [{ id: "a", name: "A" }] }, /skill to have "description"/],
  ])("refuses %j", (change, reason) => {
    const definition = { ...minimal, run: () => "x", ...change } as AgentDefinition;
    expect(() => defineAgent(definition)).toThrow(reason);
  });

  it("takes a generator, an async function and a function", async () => {
    const generator = agentOf(async function* (turn) {
      yield turn.working("on it");
      return turn.reply("late");
    });
    expect(await runToEnd(generator)).toEqual({
      events: [{ status: "TASK_STATE_WORKING", message: { parts: [{ text: "on it" }] } }],
      answer: { parts: [{ text: "late" }] },
    });
    expect(await runToEnd(agentOf(async () => "hi"))).toEqual({ events: [], answer: { parts: [{ text: "hi" }] } });
    expect(await runToEnd(agentOf(() => [data(null)]))).toEqual({ events: [], answer: { parts: [{ data: null }] } });
    expect(await runToEnd(agentOf(async () => {}))).toEqual({ events: [], answer: undefined });
  });

  it("turns what a function throws into a rejection of the run", async () => {
    const boom = () => {
      throw new Error("boom");
    };
    await expect(runToEnd(agentOf(boom))).rejects.toThrow("boom");
    await expect(runToEnd(agentOf(async () => boom()))).rejects.toThrow("boom");
  });

  it("refuses an answer that is no message", async () => {
    const run: unknown = () => 42;
    await expect(runToEnd(agentOf(run as AgentDefinition["run"]))).rejects.toThrow(
      /must return text, parts, a message, or nothing/,
    );
  });
});

describe("a turn", () => {
  it("shows what the engine gave, and the text of all text parts", async () => {
    const seen: AgentTurn[] = [];
    const agent = agentOf((turn) => {
      seen.push(turn);
    });
    const turn = turnOf({ parts: [{ text: "a" }, { data: 1 }, { text: "b" }] });
    await agent.run(turn).next();
    expect(seen[0]?.text).toBe("a\nb");
    for (const key of ["message", "history", "task", "caller", "signal", "memory", "attempt", "metadata"] as const) {
      expect(seen[0]?.[key]).toBe(turn[key]);
    }
  });

  it("builds statuses", async () => {
    const events = await eventsOf(async function* (turn) {
      yield turn.working();
      yield turn.inputRequired("which?");
      yield turn.authRequired([text("log in", { mediaType: "text/markdown" })]);
      yield turn.completed();
      yield turn.completed("bye");
      yield turn.failed("no");
      yield turn.rejected("never");
    });
    expect(events).toEqual([
      { status: "TASK_STATE_WORKING" },
      { status: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "which?" }] } },
      { status: "TASK_STATE_AUTH_REQUIRED", message: { parts: [{ text: "log in", mediaType: "text/markdown" }] } },
      { status: "TASK_STATE_COMPLETED" },
      { status: "TASK_STATE_COMPLETED", message: { parts: [{ text: "bye" }] } },
      { status: "TASK_STATE_FAILED", message: { parts: [{ text: "no" }] } },
      { status: "TASK_STATE_REJECTED", message: { parts: [{ text: "never" }] } },
    ]);
  });

  it("builds artifacts, named ones with their name as id", async () => {
    interface Plan {
      steps: { title: string; note?: string }[];
    }
    const plan: Plan = { steps: [{ title: "one" }] };
    const events = await eventsOf(async function* (turn) {
      yield turn.artifact({ name: "plan", data: plan });
      yield turn.artifact({ text: "no name" });
      yield turn.artifact({ name: "n", artifactId: "i", parts: [data(plan)], append: true, lastChunk: false });
    });
    expect(events).toEqual([
      { artifact: { artifactId: "plan", name: "plan", parts: [{ data: plan }] } },
      { artifact: { parts: [{ text: "no name" }] } },
      { artifact: { artifactId: "i", name: "n", parts: [{ data: plan }] }, append: true, lastChunk: false },
    ]);
  });

  it("streams pieces: the first creates, the rest append, the last says so", async () => {
    async function* pieces() {
      yield "a";
      yield "";
      yield "b";
      yield "c";
    }
    const events = await eventsOf(async function* (turn) {
      yield* turn.stream("notes", pieces(), { description: "My notes" });
      yield* turn.stream("one", ["only"], { artifactId: "1" });
      yield* turn.stream("none", []);
    });
    expect(events).toEqual([
      { artifact: { artifactId: "notes", name: "notes", description: "My notes", parts: [{ text: "a" }] } },
      { artifact: { artifactId: "notes", name: "notes", parts: [{ text: "b" }] }, append: true },
      { artifact: { artifactId: "notes", name: "notes", parts: [{ text: "c" }] }, append: true },
      { artifact: { artifactId: "notes", name: "notes", parts: [{ text: "" }] }, append: true, lastChunk: true },
      { artifact: { artifactId: "1", name: "one", parts: [{ text: "only" }] }, lastChunk: true },
    ]);
  });
});

it("passes a piece on before the next one is there", async () => {
  let release = () => {};
  const more = new Promise<void>((resolve) => {
    release = resolve;
  });
  async function* pieces() {
    yield "first";
    await more;
    yield "second";
  }
  const agent = defineAgent({
    name: "Slow",
    description: "Speaks slowly.",
    async *run(turn) {
      yield* turn.stream("notes", pieces());
    },
  });
  const run = agent.run(turnOf());
  expect((await run.next()).value).toMatchObject({ artifact: { parts: [{ text: "first" }] } });
  release();
  expect((await run.next()).value).toMatchObject({ artifact: { parts: [{ text: "second" }] }, append: true });
});

describe("parts", () => {
  it("carries files by content and by address", () => {
    const bytes = new Uint8Array([0, 255, 1]).subarray(1);
    expect(file({ bytes, filename: "a.bin" })).toEqual({ raw: "/wE=", filename: "a.bin" });
    expect(file({ url: "https://example.com/a", mediaType: "text/plain" })).toEqual({
      url: "https://example.com/a",
      mediaType: "text/plain",
    });
  });
});

describe("echo", () => {
  it("sends the same parts back in three steps", async () => {
    const parts = [{ text: "hello" }, { data: { a: 1 } }];
    expect(await runToEnd(createEchoAgent(), { parts })).toEqual({
      events: [{ status: "TASK_STATE_WORKING" }, { artifact: { artifactId: "echo", name: "echo", parts } }],
      answer: undefined,
    });
  });
});
