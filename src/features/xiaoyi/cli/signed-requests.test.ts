/** Commands to an agent made for Xiaoyi, which believes signatures only. */
import { createHmac } from "node:crypto";
import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, type TestAgent } from "../../../core/cli/testing/agent-server.ts";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";

const AK = "the-access-key";
const SK = "the-secret-key";

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
  agent.replies = {
    "message/stream": {
      events: [
        {
          taskId: "t",
          kind: "artifact-update",
          append: false,
          lastChunk: true,
          final: true,
          artifact: answerOf("Hi!"),
        },
      ],
    },
    "tasks/cancel": { result: { id: "t", status: { state: "canceled" } } },
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
});

const answerOf = (text: string) => ({ artifactId: "a", parts: [{ kind: "text", text }] });
const here = (...words: string[]) =>
  runInProcess(...words, "-a", `${agent.url}/agent/message`, "--dialect", "xiaoyi-http");

/** Whether all that came was signed with the keys. */
function expectSigned(): void {
  expect(agent.received).not.toEqual([]);
  for (const { headers } of agent.received) {
    const sign = createHmac("sha256", SK).update(String(headers.ts)).digest("base64");
    expect(headers).toMatchObject({ accesskey: AK, sign });
    expect(JSON.stringify(headers)).not.toContain(SK);
  }
}

describe("requests to an agent made for Xiaoyi", () => {
  it("are signed with keys of the environment", async () => {
    vi.stubEnv("A2ACLI_ACCESS_KEY", AK);
    vi.stubEnv("A2ACLI_SECRET_KEY", SK);
    const sent = await here("send", "hello", "--debug");
    expect([sent.code, sent.stdout]).toEqual([0, expect.stringContaining("Hi!")]);
    expect(sent.stderr).not.toContain(SK);
    expect((await here("task", "cancel", "t")).code).toBe(0);
    expect(agent.received.map(({ body }) => body.method)).toEqual(["message/stream", "tasks/cancel"]);
    expectSigned();
  });

  it("are signed with keys of a file, with a warning if others can read it", async () => {
    const file = join(await mkdtemp(join(tmpdir(), "dragoman-")), "keys.env");
    await writeFile(file, `A2ACLI_ACCESS_KEY=${AK}\nA2ACLI_SECRET_KEY=${SK}\n`);
    await chmod(file, 0o644);
    const { code, stderr } = await here("send", "hello", "--config", file);
    expect([code, stderr]).toEqual([0, expect.stringContaining("holds credentials and others may read it")]);
    expectSigned();
  });

  it("are not sent with half of the keys", async () => {
    const { code, stderr } = await here("send", "hello", "--secret-key", SK);
    expect([code, agent.received]).toEqual([2, []]);
    expect(stderr).toContain("A2ACLI_ACCESS_KEY");
    expect(stderr).not.toContain(SK);
    vi.stubEnv("A2ACLI_ACCESS_KEY", AK);
    expect((await here("send", "hello")).stderr).toContain("A2ACLI_SECRET_KEY");
  });

  it("that are refused say how they could be signed", async () => {
    agent.replies["message/stream"] = { status: 401 };
    const { code, stderr } = await here("send", "hello");
    expect(code).not.toBe(0);
    expect(stderr).toContain("A2ACLI_ACCESS_KEY and A2ACLI_SECRET_KEY");
  });
});
