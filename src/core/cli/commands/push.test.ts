import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createEchoAgent } from "../../agents/builtin.ts";
import { signPush } from "../../auth/signatures/sign-push.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import { serve } from "../../server/serve.ts";
import { openStore } from "../../store/open.ts";
import { accept, finished, registration } from "../../store/suite/fixtures.ts";
import { finished as ended, startCli, stopAll } from "../testing/run-cli.ts";
import { runInProcess } from "../testing/run-in-process.ts";
import { type Inbox, type InboxOptions, openInbox, type ReceivedNotification } from "./push-inbox.ts";

const SECRET = "a secret of both sides";
const EVENT = JSON.stringify({ statusUpdate: { taskId: "t1", status: { state: "TASK_STATE_WORKING" } } });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-push-"));
});
afterAll(async () => {
  stopAll();
  await rm(folder, { recursive: true, force: true });
});

describe("the inbox", () => {
  const arrivals: ReceivedNotification[] = [];
  const inboxes: Inbox[] = [];
  afterEach(async () => {
    arrivals.length = 0;
    await Promise.all(inboxes.splice(0).map((inbox) => inbox.close()));
  });

  async function open(options: Partial<InboxOptions> = {}): Promise<string> {
    const onArrival = (arrival: ReceivedNotification) => void arrivals.push(arrival);
    const inbox = await openInbox({
      host: "127.0.0.1",
      port: 0,
      fail: 0,
      random: () => 0.5,
      now: Date.now,
      onNotification: onArrival,
      ...options,
    });
    inboxes.push(inbox);
    return inbox.url;
  }

  async function post(url: string, headers: Record<string, string>, body = EVENT): Promise<number> {
    return (await fetch(url, { method: "POST", headers: { "content-type": "application/a2a+json", ...headers }, body }))
      .status;
  }

  test("takes and describes what every version sends", async () => {
    const url = await open();
    expect(await post(url, { "x-dragoman-event": "7" })).toBe(204);
    await post(url, {}, JSON.stringify({ task: { id: "t2", status: { state: "TASK_STATE_SUBMITTED" } } }));
    await post(url, {}, JSON.stringify({ artifactUpdate: { taskId: "t3", artifact: {} } }));
    await post(url, {}, JSON.stringify({ kind: "task", id: "t4", status: { state: "completed" } }));
    await post(url, {}, JSON.stringify({ id: "t5", sessionId: "s", status: { state: "working" } }));
    expect(await post(url, {}, "nothing")).toBe(400);
    expect((await fetch(url)).status).toBe(405);
    expect(arrivals.map(({ event, task, what }) => [event, task, what])).toEqual([
      [7, "t1", "statusUpdate TASK_STATE_WORKING"],
      [undefined, "t2", "task TASK_STATE_SUBMITTED"],
      [undefined, "t3", "artifactUpdate"],
      [undefined, "t4", "task completed"],
      [undefined, "t5", "task working"],
      [undefined, undefined, "no JSON object"],
    ]);
  });

  test("wants its token in either spelling", async () => {
    const url = await open({ token: "sesame" });
    expect(await post(url, { "x-a2a-notification-token": "sesame" })).toBe(204);
    expect(await post(url, { "a2a-notification-token": "sesame" })).toBe(204);
    expect(await post(url, { "a2a-notification-token": "Sesame" })).toBe(401);
    expect(await post(url, {})).toBe(401);
    expect(arrivals.map(({ checks, verified }) => [checks.token, verified])).toEqual([
      ["valid", true],
      ["valid", true],
      ["wrong", false],
      ["absent", false],
    ]);
  });

  test("wants a signature that fits", async () => {
    const url = await open({ secret: SECRET });
    expect(await post(url, { "x-dragoman-signature": signPush(SECRET, { url, body: EVENT }, Date.now()) })).toBe(204);
    expect(await post(url, { "x-dragoman-signature": signPush("other", { url, body: EVENT }, Date.now()) })).toBe(401);
    const elsewhere = { url: "https://mallory.example/", body: EVENT };
    expect(await post(url, { "x-dragoman-signature": signPush(SECRET, elsewhere, Date.now()) })).toBe(401);
    const below = { url: `${url}/a/b?c=d`, body: EVENT };
    expect(await post(below.url, { "x-dragoman-signature": signPush(SECRET, below, Date.now()) })).toBe(204);
    expect(arrivals.map(({ checks }) => checks.signature)).toEqual(["valid", "wrong", "wrong", "valid"]);
  });

  test("fails as often as configured, but rejects what is invalid in any case", async () => {
    const rolls = [0.1, 0.29, 0.31];
    const url = await open({ token: "sesame", fail: 0.3, random: () => rolls.shift() ?? 1 });
    const headers = { "a2a-notification-token": "sesame" };
    expect([await post(url, headers), await post(url, headers), await post(url, headers)]).toEqual([503, 503, 204]);
    expect(await post(url, {})).toBe(401);
  });
});

describe("dragoman push inbox", () => {
  test("[A2ACLI_PUSH_002] receives from a server, checks and ends after as many as configured", async () => {
    const args = ["push", "inbox", "--port", "0", "--token", "sesame", "--count", "3", "-o", "json"];
    const child = startCli(args, { environment: { DRAGOMAN_PUSH_SECRET: SECRET } });
    const done = ended(child);
    const url = await new Promise<string>((resolve) => {
      let talk = "";
      child.stderr.on("data", (text: string) => {
        talk += text;
        const [found] = /http:\S+(?=;)/.exec(talk) ?? [];
        if (found !== undefined) resolve(found);
      });
    });
    const push = { allowPrivateTargets: true, hmac: { secret: SECRET } };
    const server = await serve({ port: 0, grpcPort: false, log: false, agents: { echo: createEchoAgent() }, push });
    try {
      const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] };
      const configuration = { taskPushNotificationConfig: { url: `${url}/?planted=secret`, token: "sesame" } };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message, configuration } });
      await fetch(server.url, {
        method: "POST",
        headers: { "content-type": "application/json", "a2a-version": "1.0" },
        body,
      });
      const { code, stdout } = await done;
      expect(code).toBe(0);
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as ReceivedNotification);
      expect(lines.slice(0, 3)).toMatchObject([
        { arrival: 1, event: 1, verified: true, checks: { token: "valid", signature: "valid" }, answer: 204 },
        { arrival: 2, event: 2, verified: true },
        { arrival: 3, event: 3, verified: true },
      ]);
    } finally {
      await server.close();
    }
  });

  test.each([
    [["--fail", "101"], "--fail must be a number from 0 to 100"],
    [["--count", "0"], "--count must be a number from 1"],
    [["--port", "x"], "--port must be a whole number from 0 to 65535"],
    [["--jwks", "keys.json"], "--jwks must be an http or https URL"],
    [["--public-url", "here"], "--public-url must be an http or https URL"],
  ])("%j is refused", async (args, message) => {
    const { code, stderr } = await runInProcess("push", "inbox", ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe("dragoman push deliveries and redeliver", () => {
  test("show what was given up and bring it back, beside the process that serves the store", async () => {
    const file = join(folder, "served.db");
    const spec = `sqlite:${file}`;
    const serving = await openStore(spec, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG });
    const claiming = {
      node: "n",
      route: "webhook",
      max: 9,
      ttlMs: 60_000,
      perLane: 9,
      busy: new Map<string, number>(),
    };
    try {
      const address = "https://hook.example/path?planted=secret";
      const secret = '{"token":"planted-token"}';
      await accept(serving, finished("task-1", 1, { deliveries: [registration("one", { address, secret })] }));
      const [claim] = (await serving.claimDeliveries(claiming)).claims;
      if (claim === undefined) throw new Error("nothing was due");
      const next = { kind: "dead" as const, error: "HTTP 500" };
      await accept(serving, { kind: "delivery-progress", id: "task-1", ...claim, cursor: 1, next });

      const text = await runInProcess("push", "deliveries", "--dead", "--store", spec);
      expect(text.code).toBe(0);
      expect(text.stdout).toMatch(/^Task: task-1\nConfig: one\nURL: https:\/\/hook.example\/path\nState: given up at /);
      expect(text.stdout).toContain("Undelivered Events: 1\nFailed Tries: 1\nLast Error: HTTP 500\n");
      const json = await runInProcess("push", "deliveries", "--store", spec, "-o", "json");
      expect(JSON.parse(json.stdout)).toMatchObject({
        deliveries: [{ taskId: "task-1", configId: "one", owner: "alice", undelivered: 1, lastError: "HTTP 500" }],
      });
      expect(text.stdout + json.stdout).not.toContain("planted");

      const room = registration("reply", { route: "room:lobby", address: '{"post":1}' });
      await accept(serving, finished("task-2", 1, { deliveries: [room] }));
      const other = await runInProcess("push", "deliveries", "--task", "task-2", "--store", spec);
      expect(other.stdout).toMatch(
        /^Task: task-2\nConfig: reply\nRoute: room:lobby\nAddress: {"post":1}\nState: waiting/,
      );
      const routes = await runInProcess("push", "deliveries", "--store", spec, "-o", "json");
      expect(JSON.parse(routes.stdout)).toMatchObject({
        deliveries: [
          { route: "webhook", url: "https://hook.example/path" },
          { route: "room:lobby", address: '{"post":1}' },
        ],
      });

      expect((await serving.claimDeliveries(claiming)).claims).toEqual([]);
      const again = await runInProcess("push", "redeliver", "task-1", "--id", "one", "--store", spec);
      expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("Configs Due Again: 1")]);
      expect((await serving.claimDeliveries(claiming)).claims).toMatchObject([{ delivery: { id: "one", cursor: 1 } }]);
      expect((await runInProcess("push", "redeliver", "--all", "--store", spec)).stdout).toContain(
        "Configs Due Again: 0",
      );
      const whole = await runInProcess("push", "redeliver", "task-1", "--from", "1", "--store", spec);
      expect(whole.code).toBe(0);
      expect((await serving.claimDeliveries(claiming)).claims).toMatchObject([{ delivery: { id: "one", cursor: 0 } }]);
    } finally {
      await serving.close();
    }
  });

  test.each([
    [["redeliver"], "A task or --all is required"],
    [["redeliver", "task-1", "--all"], "A task and --all are mutually exclusive"],
    [["redeliver", "--all", "--from", "1"], "--id and --from require a task"],
    [["redeliver", "task-1", "--from", "0"], "--from must be a whole number from 1"],
    [["deliveries", "--store", "memory:"], "exists only while its server runs"],
  ])("%j is refused", async (args, message) => {
    const { code, stderr } = await runInProcess("push", ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test("redelivering is put on record where the configuration asks for one, and refused where it must be", async () => {
    const config = join(folder, "audited.yaml");
    const audit = join(folder, "audit.jsonl");
    const yaml = (audited: string) =>
      `store: sqlite:audited.db\nagents: { echo: { use: echo } }\naudit: { file: ${audited}, required: true }\n`;
    await writeFile(config, yaml("audit.jsonl"));
    const spec = `sqlite:${join(folder, "audited.db")}`;
    const store = await openStore(spec, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG });
    await accept(store, finished("task-1", 1, { deliveries: [registration("one", { secret: '"planted-token"' })] }));
    await store.close();
    const { code } = await runInProcess("push", "redeliver", "task-1", "--from", "1", "--config", config);
    expect(code).toBe(0);
    const text = await readFile(audit, "utf8");
    expect(JSON.parse(text)).toEqual({
      time: expect.any(String),
      operator: expect.stringMatching(/./),
      address: hostname(),
      owner: "alice",
      agent: "echo",
      dialect: registration("one").dialect,
      operation: "push-redeliver",
      task: "task-1",
      config: "one",
      event: 1,
      result: "OK",
    });
    await writeFile(config, yaml("no/such/folder.jsonl"));
    const refused = await runInProcess("push", "redeliver", "task-1", "--from", "1", "--config", config);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("audit.required is set")]);
  });

  test("redelivering what does not wait is a failure that says so", async () => {
    const spec = `sqlite:${join(folder, "empty.db")}`;
    await (await openStore(spec, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG })).close();
    const { code, stderr } = await runInProcess("push", "redeliver", "task-1", "--store", spec);
    expect(code).toBe(1);
    expect(stderr).toContain("The task has no undelivered notifications");
  });
});
