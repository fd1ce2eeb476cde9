import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Message, type SendOutcome, type Task } from "../src/client.ts";
import { CLI, cleanEnvironment, ROOT, runProgram, type ServedProcess, serveConfig } from "./built/cli.ts";
import { typeErrors } from "./built/project.ts";
import { blocksOf } from "./readme/blocks.ts";

const EXAMPLES = join(ROOT, "examples");

function taskOf(outcome: SendOutcome): Task {
  if ("message" in outcome) throw new Error("It answered without a task.");
  return outcome.task;
}

const said = (message: Message | undefined) => message?.parts.map((part) => ("text" in part ? part.text : ""));

function serving(config: string): () => string {
  let served: ServedProcess | undefined;
  beforeAll(async () => {
    served = await serveConfig(join(EXAMPLES, config));
  });
  afterAll(async () => {
    expect(await served?.stop()).toBe(0);
  });
  return () => served?.url ?? "";
}

it("the examples use the package by its name and compile", () => {
  const files = ["hello/agent.ts", "embed/main.ts"].map((file) => join(EXAMPLES, file));
  for (const file of files) expect(readFileSync(file, "utf8")).toMatch(/from "dragoman"/);
  expect(typeErrors(files)).toEqual([]);
});

describe("hello", () => {
  const url = serving("hello/dragoman.yaml");

  it("is an agent of about twenty lines", () => {
    expect(readFileSync(join(EXAMPLES, "hello/agent.ts"), "utf8").split("\n").length).toBeLessThan(25);
  });

  it("greets, in pieces", async () => {
    const agent = await connect(`${url()}/agents/hello`);
    const chunks: string[] = [];
    let last = "";
    for await (const { event } of agent.stream("Ada")) {
      if ("artifactUpdate" in event) {
        chunks.push(...event.artifactUpdate.artifact.parts.map((part) => ("text" in part ? part.text : "")));
      }
      if ("statusUpdate" in event) last = event.statusUpdate.status.state;
    }
    expect(chunks.join("")).toBe("Hello, Ada! Good to see you.");
    expect(last).toBe("TASK_STATE_COMPLETED");
  });

  it("asks when the message is empty, and continues with the answer", async () => {
    const agent = await connect(`${url()}/agents/hello`);
    const asked = taskOf(await agent.send({ message: { parts: [{ data: {} }] } }));
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(said(asked.status.message)).toEqual(["Who are you?"]);
    const done = taskOf(await agent.send({ message: { taskId: asked.id, parts: [{ text: "Grace" }] } }));
    expect(done.id).toBe(asked.id);
    expect(done.artifacts).toMatchObject([{ name: "greeting", parts: [{ text: "Hello, Grace! Good to see you." }] }]);
  });
});

describe("script", () => {
  const url = serving("script/dragoman.yaml");
  const hasPython = spawnSync("python3", ["--version"]).status === 0;

  it("shouts", async () => {
    const agent = await connect(`${url()}/agents/shout`);
    expect(agent.card.description).toBe("Says it again in capital letters.");
    const task = taskOf(await agent.send("hello\nworld"));
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts).toMatchObject([{ name: "output", parts: [{ text: "HELLO\nWORLD" }] }]);
  });

  it(hasPython ? "counts" : "says what is missing where there is no Python", async () => {
    const agent = await connect(`${url()}/agents/count`);
    const task = taskOf(await agent.send("one two three"));
    if (!hasPython) {
      expect(task.status.state).toBe("TASK_STATE_FAILED");
      expect(said(task.status.message)?.[0]).toBe("The agent's program could not be started.");
      return;
    }
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts).toMatchObject([
      { name: "count", parts: [{ data: { words: 3, characters: 13 } }] },
      { name: "output", parts: [{ text: "3 words\n" }] },
    ]);
    const asked = taskOf(await agent.send({ message: { parts: [{ data: {} }] } }));
    expect(said(asked.status.message)).toEqual(["Which text shall I count?"]);
  });
});

describe("embed", () => {
  it("serves, calls, follows, lists and stops", async () => {
    const loader = import.meta.resolve("tsx");
    // From the examples' own folder, whose tsconfig.json leads to the build and not to the sources.
    const program = ["--import", loader, join(EXAMPLES, "embed/main.ts")];
    const { code, stdout, stderr } = await runProgram(process.execPath, program, { folder: EXAMPLES });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n")).toEqual([
      "Countdown, over JSONRPC",
      "event 2: TASK_STATE_WORKING",
      "event 3: 3 … ",
      "event 4: 2 … ",
      "event 5: 1 … ",
      "event 6: lift-off",
      "event 7: TASK_STATE_COMPLETED",
      '"soon": TASK_STATE_REJECTED',
      "kept: TASK_STATE_REJECTED",
      "kept: TASK_STATE_COMPLETED",
    ]);
  });
});

describe("chat", () => {
  it("has two agents that answer what is typed as docs/channels.md shows it", async () => {
    const typed = blocksOf("docs/channels.md").find(({ text }) => text.includes("to=summary"))?.text;
    const args = [CLI, "serve", join(EXAMPLES, "chat/dragoman.yaml"), "--port", "0", "--grpc-port", "off"];
    const child = spawn(process.execPath, args, { env: cleanEnvironment(), stdio: ["pipe", "pipe", "inherit"] });
    let shown = "";
    const shows = async (text: string): Promise<void> => {
      while (!shown.includes(text)) shown += String((await once(child.stdout, "data"))[0]);
    };
    try {
      await shows("listens on");
      child.stdin.write("@outline: a talk about the history of tea\n");
      await shows("\noutline: ");
      child.stdin.write(`${typed?.trimEnd()}\n`);
      await shows("[A2A:result task=t1 state=completed");
    } finally {
      child.kill("SIGTERM");
    }
    expect((await once(child, "exit"))[0]).toBe(0);
  });
});
