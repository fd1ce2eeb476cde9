import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { hasPostgres } from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import { cleanEnvironment, ROOT, requireBuild } from "../built/cli.ts";

describe.runIf(hasPostgres())("examples/cluster", () => {
  it("starts PostgreSQL and three nodes; a task of one that is killed is finished by another", async () => {
    requireBuild();
    const script = join(ROOT, "examples", "cluster", "main.mjs");
    const child = spawn(process.execPath, [script], {
      env: cleanEnvironment({ CLUSTER_PORTS: "0,0,0" }),
      stdio: "pipe",
    });
    const ended = once(child, "exit");
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
    }
    try {
      await Promise.race([
        expect.poll(() => printed).toMatch(/The cluster is ready: /),
        ended.then(() => Promise.reject(new Error(printed))),
      ]);
      const [first = "", second = ""] = /ready: (.*)/.exec(printed)?.[1]?.split(" ") ?? [];
      const pid = Number(/pid (\d+)/.exec(printed)?.[1]);
      const outcome = await (await connect(first)).send({
        message: { parts: [{ text: "8" }] },
        configuration: { returnImmediately: true },
      });
      const id = "task" in outcome ? outcome.task.id : "";
      const texts: string[] = [];
      let result = "";
      let killed = false;
      for await (const { event } of (await connect(second)).subscribe(id)) {
        if ("statusUpdate" in event) {
          const [part] = event.statusUpdate.status.message?.parts ?? [];
          const text = part !== undefined && "text" in part ? part.text : "";
          texts.push(text.replace(/ \(.*/, ""));
          if (text.startsWith("3 ") && !killed) killed = process.kill(pid, "SIGKILL");
        } else if ("artifactUpdate" in event) {
          const [part] = event.artifactUpdate.artifact.parts;
          result = part !== undefined && "text" in part ? part.text : "";
        }
      }
      expect(result).toBe("Counted to 8.");
      expect(texts).toEqual(expect.arrayContaining(["4", "5", "6", "7", "8"]));
    } finally {
      child.kill("SIGTERM");
    }
    expect((await ended)[0]).toBe(0);
  });
});
