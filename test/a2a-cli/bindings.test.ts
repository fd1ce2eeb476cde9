/** The same command over every binding of a served agent: the same output, the same errors. */
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import type { DragomanServer } from "../../src/index.ts";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";
import { startServer } from "../support/lifecycle.ts";

const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"];

const asking = defineAgent({
  name: "Asking",
  description: "Asks once, then answers with every kind of part.",
  async *run(turn) {
    if (turn.history.length === 0) {
      yield turn.inputRequired("Which colour?");
      return;
    }
    const file = { raw: "aGk=", filename: "hi.bin", mediaType: "application/octet-stream" };
    yield turn.artifact({ name: "all", parts: [{ text: `${turn.text}!` }, { data: { n: 1 } }, file] });
  },
});

let server: DragomanServer;
beforeAll(async () => {
  server = await startServer({ agents: { echo: BUILTIN_AGENTS.echo(), asking } });
});
beforeEach(() => void vi.stubEnv("HOME", "/nonexistent"));
afterEach(() => vi.unstubAllEnvs());

const ID = /\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g;
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
const normalize = (text: string) => text.replace(ID, "ID").replace(TIME, "TIME");
const run = (binding: string, agent: string, ...words: readonly string[]) =>
  runInProcess(...words, "-a", `${server.url}/agents/${agent}`, "--transport", binding);

/** Runs a command over every binding; they must not differ. */
async function overAll(agent: string, ...words: readonly string[]) {
  const results = [];
  for (const binding of BINDINGS) {
    const { code, stderr, stdout } = await run(binding, agent, ...words);
    results.push({ code, stdout: normalize(stdout), stderr: normalize(stderr) });
  }
  // The order of members in an object is not the same in all of them.
  const parsed = results.map(({ stdout }) => (words.includes("json") ? parseLines(stdout) : stdout));
  expect(parsed).toEqual(BINDINGS.map(() => parsed[0]));
  const [first = { code: null, stdout: "", stderr: "" }] = results;
  expect(results.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    BINDINGS.map(() => ({ code: first.code, stderr: first.stderr })),
  );
  return first;
}

/** A document, or one object per line. */
function parseLines(text: string): unknown {
  return text.startsWith("{\n")
    ? JSON.parse(text)
    : text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
}

/** A task that waits for a reply. */
async function startTask(binding: string): Promise<{ id: string; contextId: string }> {
  const { stdout } = await run(binding, "asking", "send", "--text", "paint", "-o", "json");
  return JSON.parse(stdout).task;
}

describe("every binding", () => {
  it("[A2ACLI_SEND_001, A2ACLI_TX_004, A2ACLI_TX_005, A2ACLI_OUT_005] prints the same text", async () => {
    const { code, stderr, stdout } = await overAll("echo", "send", "--text", "hello");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(
      /^Artifact: .*\nText:\n {2}hello\n\nTask ID: ID\nContext ID: ID\nState: TASK_STATE_COMPLETED\n/,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: there must be none
    expect(stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
  });

  it("[A2ACLI_OUT_002, A2ACLI_OUT_003] prints the protocol's own types: one document, or one event per line", async () => {
    const { stdout } = await overAll("echo", "send", "--text", "hello", "-o", "json");
    expect(Object.keys(JSON.parse(stdout))).toEqual(["task"]);
    const streamed = await overAll("echo", "send", "--text", "hello", "-o", "json", "--stream");
    const events = streamed.stdout.trimEnd().split("\n");
    expect(events.map((line) => Object.keys(JSON.parse(line)).join())).toEqual(
      expect.arrayContaining(["task", "artifactUpdate", "statusUpdate"]),
    );
    expect(JSON.parse(events.at(-1) ?? "").statusUpdate).toMatchObject({
      taskId: "ID",
      contextId: "ID",
      status: { state: "TASK_STATE_COMPLETED" },
    });
  });

  it("[A2ACLI_EXIT_002, A2ACLI_TASK_POLL_003, A2ACLI_INTERACT_004] stops at a question with exit 0 and how to reply", async () => {
    const { code, stderr, stdout } = await overAll("asking", "send", "--text", "paint");
    expect(code).toBe(0);
    expect(stdout).toContain("Which colour?");
    expect(stdout).toContain(`Resume: dragoman send -a ${server.url}/agents/asking --task-id ID --text '<reply>'\n`);
    expect(stderr).toContain("Warning: Task ID waits for your reply.\n");
  });

  it.each(BINDINGS)(
    "[A2ACLI_INTERACT_002, A2ACLI_SEND_004, A2ACLI_TASK_GET_001, A2ACLI_TASK_LIST_001] continues a task over %s, with or without its context, and shows every part",
    async (binding) => {
      const { contextId, id } = await startTask(binding);
      const listed = await run(
        binding,
        "asking",
        "task",
        "list",
        "--context-id",
        contextId,
        "--status",
        "input-required",
      );
      expect(listed.stdout).toContain(`Task ID: ${id}\n`);
      const wrong = await run(
        binding,
        "asking",
        "send",
        "--task-id",
        id,
        "--context-id",
        "another",
        "red",
        "-o",
        "json",
      );
      expect(wrong.code).toBe(1);
      expect(JSON.parse(wrong.stdout).error).toMatchObject({
        code: "InvalidParamsError",
        hint: expect.stringContaining("--debug"),
      });
      const done = await run(binding, "asking", "send", "--task-id", id, "--text", "red");
      expect(done.stdout).toContain(`Task ID: ${id}\nContext ID: ${contextId}\nState: TASK_STATE_COMPLETED\n`);
      const shown = await run(binding, "asking", "task", "get", id);
      for (const { stdout } of [done, shown]) {
        expect(stdout).toContain("Text:\n  red!\n\n");
        expect(stdout).toContain('Data:\n  {\n    "n": 1\n  }\n\n');
        expect(stdout).toMatch(/File: .*hi\.bin.*application\/octet-stream.*2 bytes/);
      }
      const again = await run(binding, "asking", "send", "--task-id", id, "--text", "more", "-o", "json");
      expect([again.code, JSON.parse(again.stdout).error.hint]).toEqual([1, expect.stringContaining("--debug")]);
    },
  );

  it.each(BINDINGS)(
    "[A2ACLI_TASK_CANCEL_001] cancels over %s, once and again, but nothing that has ended",
    async (binding) => {
      const { id } = await startTask(binding);
      const canceled = await run(binding, "asking", "task", "cancel", id);
      expect([canceled.code, canceled.stdout]).toEqual([0, expect.stringContaining("State: TASK_STATE_CANCELED\n")]);
      const again = await run(binding, "asking", "task", "cancel", id, "-o", "json");
      expect([again.code, JSON.parse(again.stdout).status.state]).toEqual([0, "TASK_STATE_CANCELED"]);
      const ended = JSON.parse((await run(binding, "echo", "send", "--text", "x", "-o", "json")).stdout).task;
      const late = await run(binding, "echo", "task", "cancel", ended.id, "-o", "json");
      expect([late.code, JSON.parse(late.stdout).error.code]).toEqual([1, "TaskNotCancelableError"]);
    },
  );

  it("[A2ACLI_OUT_004, A2ACLI_EXIT_001] reports the same errors with the same exit codes", async () => {
    for (const words of [
      ["task", "get", "nothing"],
      ["task", "cancel", "nothing"],
      ["send", "--task-id", "nothing", "--text", "x"],
    ]) {
      const { code, stdout } = await overAll("echo", ...words, "-o", "json");
      expect([code, JSON.parse(stdout)]).toEqual([
        1,
        {
          error: { code: "TaskNotFoundError", message: expect.any(String), hint: expect.any(String), a2aCode: -32001 },
        },
      ]);
    }
  });

  it.each(BINDINGS)(
    "[A2ACLI_OUT_007, A2ACLI_OUT_001] shows the messages of %s with --debug, on stderr only",
    async (binding) => {
      for (const mode of [[], ["--stream"]]) {
        const words = [
          "send",
          "--text",
          "planted words",
          "-o",
          "json",
          "--bearer",
          "planted-token",
          "--debug",
          ...mode,
        ];
        const { code, stderr, stdout } = await run(binding, "echo", ...words);
        expect(code).toBe(0);
        for (const line of stdout.trim().split(mode.length === 0 ? /$^/ : "\n"))
          expect(() => JSON.parse(line)).not.toThrow();
        const sent = stderr.split("\n").filter((line) => line.startsWith("> ") && line.includes("planted words"));
        const received = stderr.split("\n").filter((line) => line.startsWith("< ") && line.includes("planted words"));
        expect(sent.length).toBeGreaterThan(0);
        expect(received.length).toBeGreaterThan(0);
        expect(stderr).not.toContain("planted-token");
      }
    },
  );
});
