/** The article chain whose writers are found by what they can do, on other servers, as docs/recipes.md has it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connect, createRegistryClient } from "../../src/client.ts";
import type { Task } from "../../src/core/model/task.ts";
import { readProgress, type StepProgress } from "../../src/index.ts";
import { CLI, runCli, serveConfig } from "../built/cli.ts";
import { blocksOf } from "../readme/blocks.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";

const SKILLS = { outline: "generate_outline", document: "write_document", summary: "summarize" } as const;

const blocks = blocksOf("docs/recipes.md");
const recipe = (kind: string) => blocks.find((block) => block.kind === kind)?.text ?? "";

const folder = createFolder();

function write(name: string, text: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

/** A server with a registry and the chain, which has no writer of its own. */
async function serveHub() {
  write("article.yaml", recipe("found-workflow"));
  const hub = await serveConfig(write("hub.yaml", recipe("found-hub")));
  closeLater(() => hub.stop());
  return { ...hub, registry: createRegistryClient(hub.url) };
}

type Hub = Awaited<ReturnType<typeof serveHub>>;

/** A server with one writer that registers itself. Resolves when the registry lists it. */
async function serveWriter(hub: Hub, use: keyof typeof SKILLS) {
  const config = write(`${use}.yaml`, recipe("found-writer").replaceAll("outline", use));
  const server = await serveConfig(config, CLI, ["--register", hub.url]);
  closeLater(() => server.stop());
  const url = `${server.url}/agents/${use}`;
  await expect.poll(() => registered(hub, SKILLS[use])).toContain(`${url}/.well-known/agent-card.json`);
  return { ...server, url };
}

async function registered(hub: Hub, skill: string): Promise<readonly (string | undefined)[]> {
  const { items } = await hub.registry.listPage({ filter: { skill } });
  return items.map(({ url }) => url);
}

/** The chain's task, and which agents it called. */
async function writeArticle(hub: Hub, topic: string): Promise<{ task: Task; agents: Record<string, string> }> {
  const agent = await connect(`${hub.url}/agents/article`);
  const steps: StepProgress[] = [];
  let id = "";
  for await (const { event } of agent.stream(topic)) {
    if ("task" in event) id = event.task.id;
    const progress = "statusUpdate" in event ? readProgress(event.statusUpdate.status.message) : undefined;
    if (progress?.state === "started") steps.push(progress);
  }
  const agents = Object.fromEntries(steps.map(({ agent: url = "", step }) => [step, url]));
  return { task: await agent.get(id), agents };
}

describe("three writers on three other servers", () => {
  it("are found by their skills, and another with the same skill takes over when one has stopped", async () => {
    const hub = await serveHub();
    const outline = await serveWriter(hub, "outline");
    const document = await serveWriter(hub, "document");
    const summaries = [await serveWriter(hub, "summary"), await serveWriter(hub, "summary")];

    const first = await writeArticle(hub, "City bees");
    expect(first.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(first.task.artifacts?.map(({ name }) => name)).toEqual(["outline", "document", "summary"]);
    expect(first.agents).toMatchObject({ outline: outline.url, document: document.url });

    const chosen = summaries.find(({ url }) => url === first.agents.summary);
    const other = summaries.find(({ url }) => url !== first.agents.summary);
    // Killed: it cannot remove itself, so that the registry still lists it.
    await chosen?.stop("SIGKILL");
    expect(await registered(hub, SKILLS.summary)).toHaveLength(2);
    const second = await writeArticle(hub, "City bees");
    expect(second.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(second.agents.summary).toBe(other?.url);

    // On the command line, and through an agent that forwards to whoever has the skill.
    const sent = await runCli([
      "send",
      "-a",
      "skill:summarize",
      "--registry",
      hub.url,
      "--text",
      "Bees fly. Bees hum.",
    ]);
    expect([sent.code, sent.stderr]).toEqual([0, expect.stringContaining(`Using`)]);
    const forwarded = await runCli(["send", "-a", "pen", "--registry", hub.url, "--text", "Bees fly. Bees hum."]);
    expect(forwarded).toMatchObject({ code: 0, stdout: expect.stringContaining("Bees") });
    const run = await runCli(["run", join(folder, "article.yaml"), "--registry", hub.url, "--text", "Tea"], { folder });
    expect(run.code).toBe(0);
    expect(run.stderr).toContain(outline.url);

    // Stopped politely, it is gone from the registry.
    await other?.stop();
    expect(await registered(hub, SKILLS.summary)).not.toContain(`${other?.url}/.well-known/agent-card.json`);
    const { agents, task } = await writeArticle(hub, "City bees");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(agents.summary).toBeUndefined();
  });
});
