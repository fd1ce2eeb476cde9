import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { buildAgents, loadConfig } from "../../src/core/server/config/index.ts";
import { watchModules } from "../../src/core/server/config/watch-modules.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";
import { callRpc } from "../support/raw-http.ts";
import { userMessage } from "../support/wire-client.ts";

const agent = (word: string) => `
export default {
  profile: { name: "A", description: "A", version: "1", skills: [], inputModes: [], outputModes: [], streaming: true, extensions: [] },
  onCrash: "fail", concurrency: Infinity, timeoutMs: undefined,
  async *run() { return { parts: [{ text: ${JSON.stringify(word)} }] }; },
};`;

test("a changed module is used for the next message; one that does not load leaves the old one; other files are ignored", async () => {
  const folder = createFolder();
  await writeFile(join(folder, "agent.ts"), agent("one"));
  await writeFile(join(folder, "dragoman.yaml"), "agents: { a: { module: ./agent.ts } }\nstore: 'memory:'\n");
  const config = await loadConfig(join(folder, "dragoman.yaml"), {});
  const server = await startServer({ agents: Object.fromEntries(await buildAgents(config)) });
  const told: string[] = [];
  let tellReloaded = () => {};
  const changed = () =>
    new Promise<void>((resolve) => {
      tellReloaded = resolve;
    });
  const note = (_fields: object, message: string) => {
    told.push(message);
    tellReloaded();
  };
  closeLater(watchModules(config, server, { ...SILENT_LOG, info: note, error: note }));
  const say = async (): Promise<string> =>
    (await callRpc(server.url, "SendMessage", { message: userMessage("?") })).json.result.message.parts[0].text;

  expect(await say()).toBe("one");
  let change = changed();
  await writeFile(join(folder, "agent.ts"), agent("two"));
  await change;
  expect(await say()).toBe("two");
  await writeFile(join(folder, "server.log"), "noise");
  await writeFile(join(folder, "data.db"), "noise");
  change = changed();
  await writeFile(join(folder, "agent.ts"), "this is no TypeScript (");
  await change;
  expect(await say()).toBe("two");
  expect(told).toEqual([
    "Agent reloaded",
    expect.stringMatching(/^Agent not reloaded, the last version that loaded stays in use: .*agent\.ts/),
  ]);
});
