/** An agent that has dialled in goes on sending its answer while the server is killed and started again. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { type Credentials, RawAgent } from "../dial-in/raw-agent.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { WireClient } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";
import { Victim } from "./victim.ts";

const HELPER: Credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };
const CONFIG = "agents: { helper: { link: { agentId: agent-1, ak: access-1, sk: secret-1 } } }";

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  delete process.env.REMOTE_AGENTS;
});

/** The text of a frame, and whether it appends. */
type ToFrame = (before: string, added: string) => readonly [text: string, append: boolean];
const inPieces: ToFrame = (_before, added) => [added, true];
const inFull: ToFrame = (before, added) => [before + added, false];

it.each([
  ["in pieces that append", "SIGKILL", inPieces],
  ["in full each time it grows", "SIGKILL", inFull],
  ["in pieces that append", "SIGTERM", inPieces],
] as const)("an answer %s is whole after %s", async (_how, signal, toFrame) => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-dial-in-"));
  closing.push(() => rmSync(folder, { recursive: true, force: true }));
  process.env.REMOTE_AGENTS = CONFIG;
  const victim = new Victim(join(folder, "data.db"), "./remote-child.ts");
  closing.push(() => victim.kill());
  await victim.start();
  const dial = async () => RawAgent.dial(await victim.url, HELPER);
  const client = async () => new WireClient(HTTP_BINDINGS[0], `${await victim.url}/agents/helper`);
  const first = await dial();
  const stream = await (await client()).stream("Tell me");
  const request = await first.next();
  const { id } = await stream.task();
  first.text(request, "Once");
  for (let seen = ""; seen !== "Once"; ) {
    const { artifactUpdate } = await stream.event();
    if (artifactUpdate !== undefined) seen += textOf(artifactUpdate.artifact.parts);
  }
  await victim.kill(signal);
  await victim.start();
  const second = await dial();
  const [text, append] = toFrame("Once", " upon");
  second.text(request, text, { append });
  const [rest, appends] = toFrame("Once upon", " a time.");
  second.text(request, rest, { append: appends, final: true });
  const again = await client();
  await expect.poll(async () => (await again.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  const { artifacts = [] } = await again.get(id);
  expect(artifacts.map(({ parts }) => textOf(parts))).toEqual(["Once upon a time."]);
});
