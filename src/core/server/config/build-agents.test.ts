import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runToEnd, textOfArtifact } from "../../agents/testing/turns.ts";
import { buildAgents } from "./build-agents.ts";
import { parseConfig } from "./load.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-agents-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const build = (text: string) => buildAgents(parseConfig(text, { source: "dragoman.yaml", folder, environment: {} }));

describe("buildAgents", () => {
  it("makes agents of every kind, in order", async () => {
    const define = JSON.stringify(fileURLToPath(new URL("../../agents/define.ts", import.meta.url)));
    await writeFile(
      join(folder, "greeter.ts"),
      `import { defineAgent } from ${define};
       export default defineAgent({ name: "Greeter", description: "Greets.", run: (turn) => "Hello " + turn.text });`,
    );
    const agents = await build(`
agents:
  zeta: { use: echo }
  greeter: { module: ./greeter.ts }
  script: { exec: [sh, -c, "cat; echo ' in' $PLACE"], env: { PLACE: folder } }
`);
    expect([...agents.keys()]).toEqual(["zeta", "greeter", "script"]);
    const [zeta, greeter, script] = [...agents.values()];
    expect(zeta?.profile.name).toBe("Echo");
    expect((await runToEnd(greeter!, { text: "you" })).answer).toEqual({ parts: [{ text: "Hello you" }] });
    const { events } = await runToEnd(script!, { text: "run" });
    expect(textOfArtifact(events, "output")).toBe("run in folder\n");
    expect(script?.profile).toMatchObject({ name: "script", description: "Runs sh." });
    expect(script?.concurrency).toBe(16);
  });

  it("makes each variant of the conformance agent", async () => {
    const agents = await build(`
agents:
  all: { use: tck }
  still: { use: tck, streaming: false }
  strict: { use: tck, requiredExtension: "urn:a2a:tck:required-extension" }
`);
    const variants = [...agents.values()].map(({ profile }) => [profile.streaming, profile.extensions ?? []]);
    expect(variants).toMatchObject([
      [true, []],
      [false, []],
      [true, [{ uri: "urn:a2a:tck:required-extension", required: true }]],
    ]);
  });

  it("puts what the file says over what the agent says", async () => {
    const agents = await build(`
agents:
  mine:
    use: echo
    name: Mine
    description: Of my own.
    skills: [{ id: s, name: S, description: Does s. }]
    concurrency: 3
    onCrash: fail
    timeout: 2s
    repeatTextInStatus: true
`);
    const mine = agents.get("mine")!;
    expect(mine).toMatchObject({ concurrency: 3, onCrash: "fail", timeoutMs: 2_000 });
    expect(mine.profile).toMatchObject({ name: "Mine", description: "Of my own.", inputModes: ["*/*"] });
    expect(mine.profile.repeatTextInStatus).toBe(true);
    expect(mine.profile.skills).toEqual([{ id: "s", name: "S", description: "Does s.", tags: ["s"] }]);
    const { events } = await runToEnd(mine, { text: "hello" });
    expect(textOfArtifact(events, "echo")).toBe("hello");
  });

  it("makes agents that dial in, which are not available where there is no server", async () => {
    const about = "name: Far, description: Away., timeout: 2s, concurrency: 3, onCrash: resume";
    const agents = await build(`agents: { a: { link: { agentId: i, ak: a, sk: s }, ${about} } }`);
    const far = agents.get("a")!;
    expect(far).toMatchObject({ concurrency: 3, onCrash: "resume", timeoutMs: 2_000 });
    expect(far.profile).toMatchObject({ name: "Far", description: "Away.", streaming: true });
    expect(far.isAvailable?.()).toBe(false);
  });

  it("says which module cannot be used", async () => {
    await expect(build("agents: { a: { module: ./none.ts } }")).rejects.toThrow(/There is no agent module .*none\.ts/);
  });
});
