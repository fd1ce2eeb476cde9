import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, statusUpdate, type TestAgent, task } from "../testing/agent-server.ts";
import { runInProcess } from "../testing/run-in-process.ts";

let agent: TestAgent;
let folder: string;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  folder = mkdtempSync(join(tmpdir(), "dragoman-tasks-"));
  agent = await startTestAgent();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
  rmSync(folder, { recursive: true });
});

describe("card get", () => {
  it("[A2ACLI_CARD_GET_001, A2ACLI_TX_001] shows who the agent is, how it is reached and what would be used", async () => {
    agent.card = { securitySchemes: { k: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } } };
    const { code, stdout } = await runInProcess("card", "get", "-a", agent.url);
    expect(code).toBe(0);
    for (const line of [
      "Name: Test agent",
      "Streaming: yes",
      "Push Notifications: no",
      `Interface: JSONRPC 1.0 ${agent.url}/rpc (tenant acme)`,
      `Selected Interface: JSONRPC 1.0 ${agent.url}/rpc (tenant acme)`,
      "Security Scheme: k: API key in header X-Key",
      "Skill: talk: Talk. Talks.",
    ]) {
      expect(stdout).toContain(`${line}\n`);
    }
  });

  it("[A2ACLI_CARD_GET_001, A2ACLI_OUT_002] prints the card as it was served, from a host, a URL or a file", async () => {
    agent.card = { somethingNew: { kept: true } };
    const fromHost = await runInProcess("card", "get", "-a", agent.url.replace("http://", ""), "-o", "json");
    expect(JSON.parse(fromHost.stdout)).toMatchObject({ name: "Test agent", somethingNew: { kept: true } });
    const file = join(folder, "card.json");
    writeFileSync(file, fromHost.stdout);
    for (const reference of [`${agent.url}/.well-known/agent-card.json`, file, `file://${file}`]) {
      const { stdout } = await runInProcess("card", "get", "-a", reference, "-o", "json");
      expect(JSON.parse(stdout)).toEqual(JSON.parse(fromHost.stdout));
    }
    expect((await runInProcess("card", "get", "-a", file, "-o", "json", "--stream")).stdout.split("\n")).toHaveLength(
      2,
    );
  });

  it("[A2ACLI_CARD_GET_002] validates on request", async () => {
    expect(await runInProcess("card", "get", "-a", agent.url, "--validate")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Valid: yes\n"),
    });
    agent.card = { version: "", skills: [{ id: "x" }] };
    const { code, stdout } = await runInProcess("card", "get", "-a", agent.url, "--validate", "-o", "json");
    expect([code, JSON.parse(stdout).error.code]).toEqual([1, "A2ACLI_ERR_CARD_INVALID"]);
    expect(JSON.parse(stdout).error.message).toMatch(/version.*skills\.0\.name/);
  });

  it("[A2ACLI_VER_003] fetches the extended card only where the card promises one", async () => {
    const refused = await runInProcess("card", "get", "-a", agent.url, "--extended", "-o", "json");
    expect(JSON.parse(refused.stdout).error.code).toBe("UnsupportedOperationError");
    expect(agent.received).toEqual([]);
  });
});

describe("task get", () => {
  it("[A2ACLI_TASK_GET_001, A2ACLI_TASK_POLL_001, A2ACLI_OUT_001] shows a task, and its history when asked", async () => {
    const history = [{ messageId: "m1", role: "ROLE_USER", parts: [{ text: "question" }] }];
    agent.replies.GetTask = { result: task("WORKING", { history }) };
    const { stdout } = await runInProcess("task", "get", "-a", agent.url, "task-1", "--history", "3");
    expect(agent.received[0]?.body.params).toEqual({ tenant: "acme", id: "task-1", historyLength: 3 });
    expect(stdout).toBe(
      "History: m1\nMessage: from user\nText:\n  question\n\n" +
        "Task ID: task-1\nContext ID: context-1\nState: TASK_STATE_WORKING\n" +
        `Resume: dragoman task get --wait -a ${agent.url} task-1\n`,
    );
    const json = await runInProcess("task", "get", "-a", agent.url, "task-1", "-o", "json");
    expect(JSON.parse(json.stdout)).toEqual(task("WORKING", { history }));
  });

  it("[A2ACLI_TASK_POLL_001, A2ACLI_TASK_POLL_002, A2ACLI_TASK_POLL_003] with --wait asks until the task ends or needs someone, and takes an unknown state for neither", async () => {
    agent.replies.GetTask = [
      { result: task("UNSPECIFIED") },
      { result: task("WORKING") },
      { result: task("INPUT_REQUIRED") },
      { result: task("COMPLETED") },
    ];
    const words = ["task", "get", "-a", agent.url, "task-1", "--wait", "--poll-interval", "10ms", "-o", "json"];
    const { code, stdout } = await runInProcess(...words);
    expect([code, JSON.parse(stdout).status.state]).toEqual([0, "TASK_STATE_INPUT_REQUIRED"]);
    expect(agent.received).toHaveLength(3);
  });

  it("[A2ACLI_TASK_GET_001, A2ACLI_TASK_POLL_003, A2ACLI_OUT_001] shows all of a task whose state says nothing", async () => {
    const artifacts = [{ artifactId: "a", parts: [{ text: "half of it" }] }];
    const history = [{ messageId: "m1", role: "ROLE_USER", parts: [{ text: "question" }] }];
    agent.replies.GetTask = { result: task("UNSPECIFIED", { artifacts, history }) };
    const { code, stdout } = await runInProcess("task", "get", "-a", agent.url, "task-1", "--history", "3");
    expect([code, stdout]).toEqual([
      0,
      "History: m1\nMessage: from user\nText:\n  question\n\nArtifact: a\nText:\n  half of it\n\n" +
        "Task ID: task-1\nContext ID: context-1\nState: TASK_STATE_UNSPECIFIED\n" +
        `Resume: dragoman task get --wait -a ${agent.url} task-1\n`,
    ]);
    const json = await runInProcess("task", "get", "-a", agent.url, "task-1", "-o", "json");
    expect(JSON.parse(json.stdout)).toEqual(task("UNSPECIFIED", { artifacts, history }));
  });

  it("[A2ACLI_TASK_GET_001, A2ACLI_OUT_001] shows a finished task that lacks ids, and with --debug what was filled in", async () => {
    const { messageId: _, ...said } = { messageId: "", role: "ROLE_AGENT", parts: [{ text: "done" }, {}] };
    const status = { state: "TASK_STATE_COMPLETED", message: { ...said, role: "ROLE_WIZARD" } };
    agent.replies.GetTask = { result: task("COMPLETED", { artifacts: [{ parts: [{ text: "all" }] }], status }) };
    const { code, stderr, stdout } = await runInProcess("task", "get", "-a", agent.url, "task-1", "-o", "json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({
      artifacts: [{ artifactId: "artifact-0", parts: [{ text: "all" }] }],
      status: { message: { role: "ROLE_AGENT", parts: [{ text: "done" }, { text: "" }] } },
    });
    const debugged = await runInProcess("task", "get", "-a", agent.url, "task-1", "-o", "json", "--debug");
    for (const filled of [
      'status.message.role ("ROLE_WIZARD")',
      "status.message.messageId",
      "artifacts[0].artifactId",
    ]) {
      expect(debugged.stderr).toContain(`Loss: ${filled} filled`);
    }
  });

  it("[A2ACLI_TASK_POLL_002] gives up after --timeout, and says how to go on", async () => {
    agent.replies.GetTask = { result: task("WORKING") };
    const words = ["task", "get", "-a", agent.url, "task-1", "--wait", "--timeout", "150ms", "--poll-interval", "20ms"];
    const { code, stderr, stdout } = await runInProcess(...words);
    expect([code, stdout]).toEqual([5, ""]);
    expect(stderr).toContain("Code: A2ACLI_ERR_TIMEOUT");
    expect(stderr).toContain(`dragoman task get --wait -a ${agent.url} task-1`);
  });
});

describe("the other task commands", () => {
  it("[A2ACLI_TASK_CANCEL_001] cancel and show the resulting state", async () => {
    agent.replies.CancelTask = { result: task("CANCELED") };
    const { code, stderr, stdout } = await runInProcess("task", "cancel", "-a", agent.url, "task-1");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("State: TASK_STATE_CANCELED\n");
    agent.replies.CancelTask = { error: { code: -32002, message: "Ended." } };
    const again = await runInProcess("task", "cancel", "-a", agent.url, "task-1", "-o", "json");
    expect([again.code, JSON.parse(again.stdout).error]).toMatchObject([
      1,
      { code: "TaskNotCancelableError", a2aCode: -32002 },
    ]);
  });

  it("[A2ACLI_TASK_LIST_001, A2ACLI_OUT_003] list a page, all pages, or one task per line", async () => {
    const history = [{ messageId: "m1", role: "ROLE_USER", parts: [{ text: "question" }] }];
    const page = (id: string, nextPageToken: string) => ({
      result: { tasks: [{ ...task("WORKING", { history }), id }], nextPageToken, pageSize: 1, totalSize: 2 },
    });
    agent.replies.ListTasks = page("a", "next");
    const words = ["task", "list", "-a", agent.url, "--status", "working", "--context-id", "c", "--page-size", "1"];
    const text = await runInProcess(...words);
    expect(agent.received[0]?.body.params).toEqual({
      tenant: "acme",
      contextId: "c",
      status: "TASK_STATE_WORKING",
      pageSize: 1,
    });
    const fields = "Task ID: a\nContext ID: context-1\nState: TASK_STATE_WORKING\n\nTasks: 1 of 2\nNext Page: ";
    expect(text.stdout.startsWith(fields)).toBe(true);
    const asked = await runInProcess(...words, "--history", "1");
    expect(asked.stdout.startsWith(`History: m1\nMessage: from user\nText:\n  question\n\n${fields}`)).toBe(true);
    const json = await runInProcess(...words, "-o", "json");
    expect(JSON.parse(json.stdout)).toMatchObject({ tasks: [{ id: "a" }], nextPageToken: "next", totalSize: 2 });
    agent.replies.ListTasks = [page("a", "next"), page("b", "")];
    const all = await runInProcess(...words, "-o", "json", "--stream", "--all");
    expect(
      all.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    ).toEqual(["a", "b"]);
  });

  it("[A2ACLI_TASK_SUBSCRIBE_001, A2ACLI_OUT_003] subscribe: the task at its end, or every event", async () => {
    const events = [{ task: task("WORKING") }, statusUpdate("COMPLETED")];
    agent.replies.SubscribeToTask = { events };
    const whole = await runInProcess("task", "subscribe", "-a", agent.url, "task-1", "-o", "json");
    expect(JSON.parse(whole.stdout)).toEqual(task("COMPLETED"));
    const each = await runInProcess("task", "subscribe", "-a", agent.url, "task-1", "-o", "json", "--stream");
    expect(
      each.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(events);
  });

  it("[A2ACLI_DOWNLOAD_001] download every part under a safe name, and nothing twice", async () => {
    const parts = [
      { text: "words" },
      { raw: Buffer.from("bytes").toString("base64"), filename: "../../../evil.sh" },
      { data: { n: 1 }, filename: ".hidden" },
      { url: `${agent.url}/files/linked.txt`, filename: "linked.txt" },
    ];
    agent.replies.GetTask = { result: task("COMPLETED", { artifacts: [{ artifactId: "a/1", parts }] }) };
    const words = ["task", "download", "-a", agent.url, "task-1", "-d", join(folder, "out")];
    const first = await runInProcess(...words, "--bearer", "sesame-1234");
    expect(first.code).toBe(0);
    expect(first.stdout).toContain(`Skipped: ${agent.url}/files/linked.txt`);
    expect(readdirSync(join(folder, "out")).sort()).toEqual(["1-1.txt", "evil.sh", "hidden"]);
    expect(readFileSync(join(folder, "out/evil.sh"), "utf8")).toBe("bytes");

    writeFileSync(join(folder, "out/1-1.txt"), "mine");
    const second = await runInProcess(...words);
    expect(second.stderr).toContain("already exists");
    expect([second.code, readFileSync(join(folder, "out/1-1.txt"), "utf8")]).toEqual([1, "mine"]);

    const third = await runInProcess(...words, "--force", "--fetch-urls", "--bearer", "sesame-1234", "-o", "json");
    expect(JSON.parse(third.stdout)).toMatchObject({ taskId: "task-1", state: "TASK_STATE_COMPLETED", skipped: [] });
    expect(readFileSync(join(folder, "out/1-1.txt"), "utf8")).toBe("words");
    expect(readFileSync(join(folder, "out/linked.txt"), "utf8")).toBe("fetched bytes");
    expect(agent.cardRequests.at(-1)?.headers).not.toHaveProperty("authorization");
  });

  it("follow links of an agent into the network around this machine only where that is allowed", async () => {
    const inside = agent.url.replace("127.0.0.1", "localhost");
    const parts = [{ url: `${inside}/files/linked.txt`, filename: "linked.txt" }];
    agent.replies.GetTask = { result: task("COMPLETED", { artifacts: [{ artifactId: "a", parts }] }) };
    const words = ["task", "download", "-a", agent.url, "task-1", "-d", join(folder, "out"), "--fetch-urls"];
    const refused = await runInProcess(...words);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("a network that must not be reached");
    expect(refused.stderr).toContain("--allow-host");
    const wrong = await runInProcess(...words, "--allow-host", "http://localhost/");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--allow-host takes a host")]);
    const allowed = await runInProcess(...words, "--allow-host", "localhost");
    expect(allowed.code).toBe(0);
    expect(readFileSync(join(folder, "out/linked.txt"), "utf8")).toBe("fetched bytes");
  });
});
