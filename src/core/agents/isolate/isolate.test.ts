import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SILENT_LOG } from "../../model/ports.ts";
import { runToEnd, turnOf } from "../testing/turns.ts";
import { createIsolatedAgent } from "./index.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-isolate-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const define = JSON.stringify(fileURLToPath(new URL("../define.ts", import.meta.url)));

async function isolate(source: string) {
  const file = join(folder, `agent-${Math.random()}.ts`);
  await writeFile(file, source);
  return createIsolatedAgent({ file, id: "a", cancelGraceMs: 1_000, stallMs: false, log: SILENT_LOG });
}

it("asks the module for extended cards, and notifies it of dropped tasks", async () => {
  const agent = await isolate(`import { defineAgent } from ${define};
    let dropped = "nothing";
    export default {
      ...defineAgent({
        name: "A",
        description: "a",
        extended: (caller) => caller.authenticated ? { description: "For " + caller.owner } : undefined,
        run: () => dropped,
      }),
      async dropped(task) { dropped = task.id + " " + (await task.memory.get("key")); },
    };`);
  const { extended } = agent.profile;
  if (typeof extended !== "function") throw new Error("not a function");
  expect(await extended({ owner: "ada", authenticated: true })).toEqual({ description: "For ada" });
  expect(await extended({ owner: "anyone", authenticated: false })).toBeUndefined();
  const memory = { get: async <T>() => "kept" as T };
  const caller = { owner: "ada", authenticated: false };
  await agent.dropped?.({ id: "task-7", contextId: "c", caller, memory });
  expect((await runToEnd(agent)).answer).toEqual({ parts: [{ text: "task-7 kept" }] });
});

it("keeps what is left of one turn away from the memory of the next", async () => {
  const agent = await isolate(`import { defineAgent } from ${define};
    let first;
    export default defineAgent({
      name: "A",
      description: "a",
      async run(turn) {
        if (first === undefined) {
          first = turn.memory;
          return "kept";
        }
        await turn.memory.set("own", 1);
        return first.set("foreign", 2).then(() => "written", (error) => error.message);
      },
    });`);
  expect((await runToEnd(agent)).answer).toEqual({ parts: [{ text: "kept" }] });
  const { answer } = await runToEnd(agent);
  expect(JSON.stringify(answer)).toContain("The turn is over; its memory can no longer be used.");
});

it("warns about events that are made and not yielded, each with its place and once for all threads", async () => {
  const agent = await isolate(`import { defineAgent } from ${define};
    export default defineAgent({
      name: "A",
      description: "a",
      async *run(turn) {
        turn.artifact({ name: "lost", text: "x" });
        yield turn.artifact({ name: "kept", text: "x" });
        yield* turn.stream("kept, too", ["x"]);
        return turn.reply("Done");
      },
    });`);
  const warningsOf = async () => {
    const turn = { ...turnOf(), unyielded: new Map<object, () => string | undefined>() };
    const run = agent.run(turn);
    while ((await run.next()).done !== true);
    return [...turn.unyielded.values()].map((describe) => describe());
  };
  const both = (await Promise.all([warningsOf(), warningsOf()])).flat().filter((warning) => warning !== undefined);
  expect(both).toEqual([expect.stringMatching(/^turn\.artifact\(…\) at .*agent-[^/]*\.ts:6:\d+ has no effect/)]);
});

it("passes on what concerns the conversation, and what is to happen once", async () => {
  const agent = await isolate(`import { defineAgent } from ${define};
    export default defineAgent({
      name: "A",
      description: "a",
      async run({ conversation, memory }) {
        await conversation.set("name", "Ada");
        await conversation.append("said", { a: 1 });
        const once = [await memory.once("n", () => 1), await memory.once("n", () => 2)];
        return JSON.stringify([await conversation.get("said"), await conversation.get("none") ?? null, once]);
      },
    });`);
  const calls: unknown[] = [];
  const conversation = {
    get: async <T>(key: string) => (key === "none" ? undefined : [{ a: 1 }]) as T | undefined,
    set: async (...values: unknown[]) => void calls.push(["set", ...values]),
    append: async (...values: unknown[]) => void calls.push(["append", ...values]),
  };
  const { value } = await agent.run({ ...turnOf(), conversation }).next();
  expect(value).toEqual({ parts: [{ text: '[[{"a":1}],null,[1,1]]' }] });
  expect(calls).toEqual([
    ["set", "name", "Ada"],
    ["append", "said", { a: 1 }],
  ]);
});

it("says which module cannot be used", async () => {
  await expect(isolate("export const agent = 1;")).rejects.toThrow(/has no default export/);
});
