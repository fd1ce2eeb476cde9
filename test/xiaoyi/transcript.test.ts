/** What a person does at three terminals: the platform, a server that dials it, and a look at the task from elsewhere. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { finished, runCli, startCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { createFolder } from "../support/lifecycle.ts";

const ENVIRONMENT = { XIAOYI_AGENT: "agent-1", XIAOYI_AK: "key-1", XIAOYI_SK: "secret-1" };

const folder = createFolder();
afterAll(stopAll);

/** The first thing like it that a process says. */
function heard(stream: NodeJS.ReadableStream, what: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    stream.on("data", (piece: string) => {
      text += piece;
      const [found] = what.exec(text) ?? [];
      if (found !== undefined) resolve(found);
    });
  });
}

test("a phone's message is answered over the link, and the task can be read over A2A 1.0", {
  timeout: 120_000,
}, async () => {
  const platform = startCli(["simulate", "xiaoyi", "--port", "0", "-o", "json"], { environment: ENVIRONMENT });
  const talked = finished(platform);
  const link = await heard(platform.stderr, /ws:\S+/);
  const config = [
    "store: 'memory:'",
    "agents:",
    "  echo: { use: echo }",
    "xiaoyi:",
    `  links: [{ agent: echo, agentId: "\${XIAOYI_AGENT}", ak: "\${XIAOYI_AK}", sk: "\${XIAOYI_SK}", url: "${link}" }]`,
  ];
  await writeFile(join(folder, "dragoman.yaml"), config.join("\n"));
  const server = startCli(["serve", "--port", "0", "--grpc-port", "off"], {
    environment: ENVIRONMENT,
    workingDirectory: folder,
  });
  server.stdout.setEncoding("utf8");
  const url = await heard(server.stdout, /http:\/\/127\.0\.0\.1:\d+/);
  platform.stdin.end("你好，小艺\n");
  const { code, stderr, stdout } = await talked;
  expect(stderr).not.toContain("Warning");
  expect(code).toBe(0);
  const shown = JSON.parse(stdout) as { readonly task: { readonly id: string }; readonly screen: unknown };
  expect(shown).toMatchObject({ task: { ending: "final" }, screen: { text: "你好，小艺", state: "completed" } });

  const words = ["task", "get", "-a", `${url}/agents/echo`, shown.task.id, "--history", "5", "-o", "json"];
  const read = await runCli(words);
  expect([read.code, read.stderr]).toEqual([0, ""]);
  expect(JSON.parse(read.stdout)).toMatchObject({
    id: shown.task.id,
    status: { state: "TASK_STATE_COMPLETED" },
    history: [{ role: "ROLE_USER", parts: [{ text: "你好，小艺" }] }],
    artifacts: [{ parts: [{ text: "你好，小艺" }] }],
  });
  server.kill("SIGTERM");
});
