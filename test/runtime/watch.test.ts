import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type LogLine, ServedFolder } from "./served-folder.ts";

const agent = (word: string) => `import { defineAgent } from "dragoman";
import { mark } from "./lib/mark.ts";
export default defineAgent({ name: "A", description: "a", run: () => ${JSON.stringify(word)} + mark });`;
const config = (more = "", port = 4000) => `
server: { port: ${port} }
store: "memory:"
agents:
  a: { module: ./agents/a.ts${more} }
  shell: { exec: [echo, one] }
`;

const served = new ServedFolder({
  "dragoman.yaml": config(),
  "agents/a.ts": agent("one"),
  "agents/lib/mark.ts": "export const mark = '!';",
});
beforeAll(() => served.start(["--watch"]));

/** As editors save: the new content is written beside and put into the place of the old. */
function saveByRename(path: string, text: string): void {
  served.write(`${path}.tmp~`, text);
  renameSync(served.path(`${path}.tmp~`), served.path(path));
}

/** What the server reports of a change. */
async function reported(change: () => void, matches: (line: LogLine) => boolean): Promise<LogLine> {
  const skip = served.log.length;
  change();
  return served.logged(matches, skip);
}

const reloaded = (name: string) => (line: LogLine) => line.agent === name && line.msg === "Agent reloaded";

test("a folder that is replaced as a whole is watched on", async () => {
  cpSync(served.path("agents"), served.path("other"), { recursive: true });
  await reported(() => {
    rmSync(served.path("agents"), { recursive: true });
    renameSync(served.path("other"), served.path("agents"));
  }, reloaded("a"));
  await reported(() => saveByRename("agents/a.ts", agent("again")), reloaded("a"));
  expect(await served.ask("a", "?")).toBe("again!");
  await reported(() => saveByRename("agents/a.ts", agent("one")), reloaded("a"));
});

test("files saved by rename are loaded, time after time", async () => {
  expect(await served.ask("a", "?")).toBe("one!");
  for (const word of ["two", "three", "four"]) {
    await reported(() => saveByRename("agents/a.ts", agent(word)), reloaded("a"));
    expect(await served.ask("a", "?")).toBe(`${word}!`);
  }
  await reported(() => execFileSync("sed", ["-i", "s/four/five/", served.path("agents/a.ts")]), reloaded("a"));
  expect(await served.ask("a", "?")).toBe("five!");
  await reported(() => saveByRename("agents/lib/mark.ts", "export const mark = '?';"), reloaded("a"));
  expect(await served.ask("a", "?")).toBe("five?");
});

test("a folder that is made while the server runs is watched, too", async () => {
  mkdirSync(served.path("agents/later"));
  await reported(() => served.write("agents/later/x.ts", "export const x = 1;"), reloaded("a"));
  await reported(() => saveByRename("agents/later/x.ts", "export const x = 2;"), reloaded("a"));
});

test("a broken save is reported with its reason, and the last good version answers", async () => {
  const line = await reported(
    () => saveByRename("agents/a.ts", "export default defineAgent({ name: "),
    ({ level, agent: name }) => level === 50 && name === "a",
  );
  expect(line.msg).toMatch(
    /^Agent not reloaded, the last version that loaded stays in use: .*a\.ts could not be loaded: /,
  );
  expect(await served.ask("a", "?")).toBe("five?");
  await reported(() => saveByRename("agents/a.ts", agent("six")), reloaded("a"));
  expect(await served.ask("a", "?")).toBe("six?");
});

test("a change of the configuration is taken up for agents, and announced for all else", async () => {
  await reported(() => saveByRename("dragoman.yaml", config(", name: Renamed")), reloaded("a"));
  const card = await fetch(`${served.url}/agents/a/.well-known/agent-card.json`);
  expect(await card.json()).toMatchObject({ name: "Renamed" });

  const restart = await reported(
    () => saveByRename("dragoman.yaml", `${config(", name: Renamed", 4100)}  more: { use: echo }\nstrict: true\n`),
    ({ restart }) => restart !== undefined,
  );
  expect(restart.msg).toBe("Restart to apply: strict, agents.more");

  const broken = await reported(
    () => saveByRename("dragoman.yaml", "agents: { a: { module: 7 } }"),
    ({ level, file }) => level === 50 && file !== undefined,
  );
  expect(broken.msg).toMatch(/^Configuration not applied, the last valid one stays in use: .*dragoman\.yaml:1:/);
  expect(await served.ask("a", "?")).toBe("six?");

  const environment = await reported(
    () => saveByRename(".env", "X=1\n"),
    ({ file }) => file === ".env",
  );
  expect(environment.msg).toBe("Restart to apply: .env");
});
