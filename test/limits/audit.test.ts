import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { ProtocolError } from "../../src/core/model/errors.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { Receiver } from "../push/receiver.ts";
import { createFolder, startServer } from "../support/lifecycle.ts";
import { Stage } from "../support/stage.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

const TOKEN = "planted-token-91ab";
const CONTENT = "planted-content-77cd";

const authenticate: NonNullable<ServeOptions["authenticate"]> = ({ headers }) => {
  if (headers.authorization === `Bearer ${TOKEN}`) return { owner: "alice", authenticated: true };
  throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
};

interface Line {
  readonly owner?: string;
  readonly operation: string;
  readonly task?: string;
  readonly config?: string;
  readonly result: string;
  readonly ms?: number;
}

let folder: string;
let server: DragomanServer;
beforeEach(async () => {
  folder = createFolder();
  server = await startServer({
    agents: { stage: new Stage().agent() },
    authenticate,
    baseDirectory: folder,
    audit: { file: "audit.jsonl" },
    push: { allowPrivateTargets: true, attempts: 2, retryMs: 20 },
  });
});

/** 0.1 and 0.3 share methods and name no version: without a task to tell by, 0.3 answers. */
const withoutTask = (dialect: string) => (dialect === "a2a-v01" ? "a2a-v03" : dialect);

/** Whole once the server is closed. */
async function audited(): Promise<{ text: string; lines: readonly Line[] }> {
  await server.close();
  const text = await readFile(join(folder, "audit.jsonl"), "utf8");
  return {
    text,
    lines: text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  };
}

describe.each(INTERFACES)("$dialect over $binding", (spoken) => {
  it("leaves a record of who did what to which task, from where, and how it ended", async () => {
    const agent = await speaking(server.url, spoken, { headers: { authorization: `Bearer ${TOKEN}` } });
    const outcome = await agent.send(`artifact ${CONTENT}`);
    const id = "task" in outcome ? outcome.task.id : "none";
    let streamed = "none";
    for await (const { event } of agent.stream(`artifact ${CONTENT}`)) {
      if ("task" in event) streamed = event.task.id;
      if ("statusUpdate" in event) streamed = event.statusUpdate.taskId;
    }
    await agent.get(id);
    await expect(agent.get("missing")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    const { text, lines } = await audited();
    const common = {
      owner: "alice",
      authenticated: true,
      address: "127.0.0.1",
      agent: "stage",
      dialect: spoken.dialect,
      ms: expect.any(Number),
    };
    const unknown = { ...common, dialect: withoutTask(spoken.dialect) };
    expect(lines).toEqual([
      { time: expect.stringMatching(/^\d{4}-.*Z$/), ...common, operation: "send", task: id, result: "OK" },
      { time: expect.any(String), ...common, operation: "stream", task: streamed, result: "OK" },
      { time: expect.any(String), ...common, operation: "get", task: id, result: "OK" },
      { time: expect.any(String), ...unknown, operation: "get", task: "missing", result: "TASK_NOT_FOUND" },
    ]);
    expect(text).not.toMatch(new RegExp(`${TOKEN}|${CONTENT}`));
  });

  it("leaves a record of unauthorised callers", async () => {
    const agent = await speaking(server.url, spoken, { headers: { authorization: "Bearer planted-guess-00" } });
    await expect(agent.send("artifact ok")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    const { text, lines } = await audited();
    expect(lines).toEqual([
      {
        time: expect.any(String),
        authenticated: false,
        address: "127.0.0.1",
        // Over gRPC the agent is named in the message, which is not read.
        ...(spoken.binding !== "GRPC" && { agent: "stage" }),
        // Without a version, only the method tells 0.1 from 0.3, and the body of a refused caller is not read.
        dialect: spoken.dialect === "a2a-v01" ? "a2a-v03" : spoken.dialect,
        operation: "authenticate",
        result: "UNAUTHENTICATED",
      },
    ]);
    expect(text).not.toContain("planted");
  });
});

it("leaves a record of push configs by their ids, and of what became of their notifications", async () => {
  const receiver = await Receiver.start();
  const rejecting = receiver.url(`/rejecting?key=${CONTENT}`);
  receiver.reply = ({ path }) => (path.startsWith("/rejecting") ? 500 : 204);
  const agent = await speaking(server.url, INTERFACES[0], { headers: { authorization: `Bearer ${TOKEN}` } });
  const push = { url: receiver.url(`/taking?key=${CONTENT}`), token: CONTENT };
  const { task } = (await agent.send({
    message: { parts: [{ text: "input more" }] },
    configuration: { taskPushNotificationConfig: push },
  })) as { task: { id: string } };
  await receiver.takenAt(`/taking?key=${CONTENT}`, 2);
  const { id } = await agent.createPushConfig(task.id, { url: rejecting, token: CONTENT });
  await agent.createPushConfig(task.id, { id: "by-name", url: rejecting });
  await agent.deletePushConfig(task.id, "by-name");
  await agent.cancel(task.id);
  await expect.poll(() => readFile(join(folder, "audit.jsonl"), "utf8")).toContain("GIVEN_UP");
  const { text, lines } = await audited();
  const calls = lines.filter(({ operation }) => operation !== "push-deliver");
  const inline = expect.stringMatching(/./);
  expect(calls).toMatchObject([
    { operation: "send", task: task.id, config: inline, result: "OK" },
    { operation: "push-create", task: task.id, config: id, owner: "alice", address: "127.0.0.1", result: "OK" },
    { operation: "push-create", task: task.id, config: "by-name", result: "OK" },
    { operation: "push-delete", task: task.id, config: "by-name", result: "OK" },
    { operation: "cancel", task: task.id, result: "OK" },
  ]);
  const told = (config: string | undefined) =>
    lines.filter((line) => line.operation === "push-deliver" && line.config === config);
  const { host } = new URL(rejecting);
  const common = { time: expect.any(String), owner: "alice", agent: "stage", dialect: "a2a-v1", task: task.id };
  const delivery = { ...common, operation: "push-deliver", receiver: host };
  expect(told(calls[0]?.config).slice(0, 2)).toEqual([
    { ...delivery, config: calls[0]?.config, event: 1, attempt: 1, result: "OK" },
    { ...delivery, config: calls[0]?.config, event: 2, attempt: 1, result: "OK" },
  ]);
  expect(told(id)).toEqual([
    { ...delivery, config: id, event: 3, attempt: 1, result: "FAILED", reason: "HTTP 500" },
    { ...delivery, config: id, event: 3, attempt: 2, result: "GIVEN_UP", reason: "HTTP 500" },
  ]);
  expect(text).not.toContain(CONTENT);
});

it("that cannot be opened is an error only where it is required", async () => {
  const agents = { stage: new Stage().agent() };
  const file = join(folder, "no", "such", "folder.jsonl");
  await expect(startServer({ agents, audit: { file, required: true } })).rejects.toThrow("audit");
  const lenient = await startServer({ agents, audit: { file } });
  const agent = await speaking(lenient.url, INTERFACES[0]);
  expect(await agent.send("artifact ok")).toHaveProperty("task");
});

it("leaves a record of who asked too often", async () => {
  const agents = { stage: new Stage().agent() };
  const limits = { ratePerOwner: 0.01, burstPerOwner: 1 };
  const audit = { file: "limited.jsonl" };
  const limited = await startServer({ agents, authenticate, limits, baseDirectory: folder, audit });
  const asked = { headers: { authorization: `Bearer ${TOKEN}`, "a2a-version": "1.0" } };
  expect((await fetch(`${limited.url}/rest/tasks`, asked)).status).toBe(200);
  expect((await fetch(`${limited.url}/rest/tasks`, asked)).status).toBe(429);
  await limited.close();
  const [, last = ""] = (await readFile(join(folder, "limited.jsonl"), "utf8")).trimEnd().split("\n");
  expect(JSON.parse(last)).toMatchObject({
    owner: "alice",
    authenticated: true,
    operation: "authenticate",
    result: "RESOURCE_EXHAUSTED",
  });
});
