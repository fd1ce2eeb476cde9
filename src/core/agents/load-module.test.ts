import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadAgentModule } from "./load-module.ts";
import { runToEnd } from "./testing/turns.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-modules-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const define = JSON.stringify(fileURLToPath(new URL("./define.ts", import.meta.url)));
const plainAgent = (name: string, quoted = true) => `{
  profile: { name: ${quoted ? JSON.stringify(name) : name}, description: "d", version: "1", skills: [], inputModes: [], outputModes: [], streaming: true, extensions: [] },
  onCrash: "fail", concurrency: 1, timeoutMs: undefined, async *run() {},
}`;

async function write(name: string, source: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, source);
  return file;
}

describe("loadAgentModule", () => {
  it("loads a TypeScript agent with its types and imports", async () => {
    await write("helper.ts", "export const shout = (text: string): string => text.toUpperCase();");
    const file = await write(
      "agent.ts",
      `import { defineAgent } from ${define};
       import type { AgentDefinition } from ${define};
       import { shout } from "./helper.ts";
       const name: AgentDefinition["name"] = "Shouter";
       export default defineAgent({ name, description: "Shouts.", run: async (turn) => shout(turn.text) });`,
    );
    const agent = await loadAgentModule(file);
    expect(agent.profile.name).toBe("Shouter");
    expect((await runToEnd(agent, { text: "hey" })).answer).toEqual({ parts: [{ text: "HEY" }] });
  });

  it("lets a module without installed packages import this one by name", async () => {
    const file = await write(
      "by-name.ts",
      `import { defineAgent, data } from "dragoman";
       export default defineAgent({ name: "Named", description: "d", run: () => [data({ a: 1 })] });`,
    );
    const { answer } = await runToEnd(await loadAgentModule(file));
    expect(answer).toEqual({ parts: [{ data: { a: 1 } }] });
  });

  it.each(["agent-a.js", "agent-b.mjs", "agent-c.mts"])("loads %s", async (name) => {
    const file = await write(name, `export default ${plainAgent(name)}`);
    expect((await loadAgentModule(file)).profile.name).toBe(name);
  });

  it("reads a module and its imports again only when asked", async () => {
    await write("inner.ts", 'export const name = "first";');
    const file = await write(
      "changing.ts",
      `import { name } from "./inner.ts"; export default ${plainAgent("name", false)};`,
    );
    expect((await loadAgentModule(file)).profile.name).toBe("first");
    await write("inner.ts", 'export const name = "second";');
    expect((await loadAgentModule(file)).profile.name).toBe("first");
    expect((await loadAgentModule(file, { fresh: true })).profile.name).toBe("second");
  });

  it.each(["plain.mjs", "plain.js"])("reads %s again", async (name) => {
    const file = await write(name, `export default ${plainAgent("first")}`);
    expect((await loadAgentModule(file)).profile.name).toBe("first");
    await write(name, `export default ${plainAgent("second")}`);
    expect((await loadAgentModule(file, { fresh: true })).profile.name).toBe("second");
  });

  it.each([
    ["none.ts", undefined, /There is no agent module/],
    ["notes.txt", "hello", /must end in/],
    ["broken.ts", "export default {", /could not be loaded: /],
    ["throwing.ts", "throw new Error('at start'); export default 1", /could not be loaded: at start/],
    ["missing.ts", "import './nowhere.ts'; export default 1", /could not be loaded: .*nowhere/],
    ["named.ts", "export const agent = 1", /has no default export/],
    ["other.ts", "export default { name: 'x', run() {} }", /not what defineAgent returns/],
  ])("refuses %s", async (name, source, reason) => {
    const file = source === undefined ? join(folder, name) : await write(name, source);
    await expect(loadAgentModule(file)).rejects.toThrow(reason);
    await expect(loadAgentModule(file)).rejects.toThrow(name);
  });
});
