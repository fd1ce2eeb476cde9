/** Tasks from a chat room are tasks like any other: read and cancelled over A2A, kept over a crash, results of workflows. */

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CLI, cleanEnvironment, ROOT, requireBuild } from "../built/cli.ts";
import { createProject } from "../built/project.ts";
import { grpc } from "../support/grpc-binding.ts";
import { closeLater } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";
import { WireClient } from "../support/wire-client.ts";
import { RAW_NETWORKS } from "./raw-peers.ts";
import { startInRoom } from "./stage.ts";
import { translator } from "./translator.ts";

const available = RAW_NETWORKS.filter(({ isAvailable }) => isAvailable);

/** `dragoman serve`, in a process of its own. Resolves when its channel is connected. */
async function serveProcess(config: string) {
  requireBuild();
  const args = [CLI, "serve", config, "--port", "0", "--log-level", "info"];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: cleanEnvironment(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  closeLater(() => kill("SIGKILL"));
  let output = "";
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        output += chunk;
        if (output.includes("Connected to ")) resolve();
      });
    }
    void exited.then(() => reject(new Error(`It ended: ${output}`)));
  });
  return { kill };
}

describe.each(available.filter(({ name }) => name === "irc"))("a task begun in $name", (network) => {
  it("is read over gRPC of A2A 1.0 and cancelled over JSON-RPC of 0.3", async () => {
    const room = await network.start();
    const peer = await room.join("person");
    const { url } = await startInRoom({
      agents: { translator },
      channels: [{ ...room.settings("agent"), agent: "translator", allowPeers: ["person"] }],
    });
    await peer.say("agent: [A2A:task id=t1] Wait");
    await peer.next("agent", /\[A2A:status task=t1 state=working\b/);
    const client = new WireClient(grpc, `${url}/agents/translator`);
    const { tasks = [] } = await client.list();
    expect(tasks).toHaveLength(1);
    const id = tasks[0]?.id ?? "";
    expect((await client.get(id)).status.state).toBe("TASK_STATE_WORKING");
    const { text } = await sendRaw(url, {
      method: "POST",
      path: "/agents/translator",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tasks/cancel", params: { id } }),
    });
    expect(JSON.parse(text)).toMatchObject({ result: { kind: "task", id, status: { state: "canceled" } } });
    await peer.next("agent", /\[A2A:result task=t1 state=cancelled\b/);
  });

  it("is an article, whose text arrives there", async () => {
    const room = await network.start();
    const peer = await room.join("person");
    const project = createProject();
    closeLater(() => project.remove());
    const agents = /^agents:\n(?: .*\n)+/m.exec(readFileSync(join(ROOT, "dragoman.yaml"), "utf8"))?.[0] ?? "";
    const channel = { ...room.settings("agent"), agent: "article", allowPeers: ["person"] };
    const config = `store: "memory:"\n${agents.replace("workflows/", `${ROOT}/workflows/`)}channels: [${JSON.stringify(channel)}]\n`;
    await serveProcess(project.write("dragoman.yaml", config));
    await peer.say("agent: [A2A:task id=a1] Tides");
    const first = await peer.next("agent", /\[A2A:result task=a1 state=completed\b/);
    const pieces = Number(/part=1\/(\d+)/.exec(first.text)?.[1] ?? 1);
    const posts = [first];
    while (posts.length < pieces) posts.push(await peer.next("agent", /\[A2A:result task=a1 state=completed\b/));
    expect(posts.map(({ text }) => text).join("\n")).toContain("# Tides");
  });
});

/** Works until a file is there; run again after a crash. */
const AGENT = `
import { existsSync } from "node:fs";
import { defineAgent } from "dragoman";
export default defineAgent({
  name: "Slow", description: "Waits.", onCrash: "resume",
  async *run(turn) {
    yield turn.working("Waiting");
    while (!existsSync(new URL("./go", import.meta.url))) await new Promise((resolve) => setTimeout(resolve, 20));
    yield turn.completed("Done: " + turn.text);
  },
});
`;

describe.each(available)("in a room of $name", (network) => {
  it("a task outlives its process, and its result comes to the same room", async () => {
    const room = await network.start();
    const peer = await room.join("person");
    const project = createProject();
    closeLater(() => project.remove());
    project.write("slow.mjs", AGENT);
    const channel = { ...room.settings("agent"), agent: "slow", allowPeers: [room.idOf("person")] };
    const config = `store: sqlite:data.db\nagents: { slow: { module: ./slow.mjs } }\nchannels: [${JSON.stringify(channel)}]\n`;
    const file = project.write("dragoman.yaml", config);
    const first = await serveProcess(file);
    await peer.say("@agent [A2A:task id=t1] one");
    await peer.next("agent", /\[A2A:status task=t1 state=working\b/);
    await first.kill("SIGKILL");
    if (network.keepsHistory) await peer.say("@agent [A2A:task id=t2] two");
    project.write("go", "");
    await serveProcess(file);
    const expected = network.keepsHistory ? ["one", "two"] : ["one"];
    const results: string[] = [];
    while (results.length < expected.length) {
      const { text } = await peer.next("agent", /\[A2A:result task=t\d state=completed\b/);
      results.push(/Done: (\w+)/.exec(text)?.[1] ?? text);
    }
    expect(results.sort()).toEqual(expected);
    const ofFirst = peer.posts.filter(({ text }) => text.includes("[A2A:result task=t1"));
    expect(ofFirst).toHaveLength(1);
  });
});
