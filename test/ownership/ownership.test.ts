/** Every operation of every dialect, asked by those who may and those who may not. */
import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { Issuer } from "../support/issuer.ts";
import { startServer } from "../support/lifecycle.ts";
import { Stage } from "../support/stage.ts";
import { userMessage } from "../support/wire-client.ts";
import { type Answer, askHttp, rpcResult } from "./ask.ts";
import { DIALECTS, type Row, rowsOf, type Target } from "./rows.ts";

const TIMESTAMP = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

const issuer = await Issuer.start();
const server = await startServer({
  agents: { stage: new Stage().agent({ extended: { description: "For those who are known." } }) },
  auth: { jwt: { issuer: issuer.url, audience: issuer.audience } },
  limits: { failedLogins: 100_000 },
});
const alice = await issuer.token("alice");
const callers: Readonly<Record<"none" | "wrong" | "expired" | "other", string | undefined>> = {
  none: undefined,
  wrong: await issuer.token("alice", { forged: true }),
  expired: await issuer.token("alice", { lasts: -60 }),
  other: await issuer.token("bob"),
};

const COLUMNS = ["none", "wrong", "expired", "other", "right"];
const table = [
  "| dialect and binding | operation | no credentials | wrong | expired | other owner | right |",
  `|${"---|".repeat(7)}`,
];
afterAll(() => void process.stdout.write(`\n${table.join("\n")}\n`));

/** A task of alice's that waits for an answer and has a push config. */
async function createTarget(): Promise<Target> {
  const { task } = await rpcResult(server.url, "SendMessage", { message: userMessage("input More?") }, alice);
  const config = { taskId: task.id, url: "https://hook.example/a" };
  const { id: configId } = await rpcResult(server.url, "CreateTaskPushNotificationConfig", config, alice);
  return { taskId: task.id, configId, contextId: task.contextId };
}

async function stateOf({ taskId }: Target): Promise<string> {
  const request = { method: "GET", path: `/rest/tasks/${taskId}`, headers: { "a2a-version": "1.0" } };
  const configs = { ...request, path: `${request.path}/pushNotificationConfigs` };
  return (await askHttp(server.url, request, alice)).text + (await askHttp(server.url, configs, alice)).text;
}

const REFUSALS: Readonly<Record<string, { readonly unauthenticated: RegExp; readonly absent: RegExp }>> = {
  "1.0 JSON-RPC": { unauthenticated: /^401 -32050 \+challenge$/, absent: /^200 -32001$/ },
  "1.0 HTTP+JSON": { unauthenticated: /^401 UNAUTHENTICATED \+challenge$/, absent: /^404 NOT_FOUND$/ },
  "1.0 gRPC": { unauthenticated: /^UNAUTHENTICATED \+challenge$/, absent: /^NOT_FOUND$/ },
  "0.3 JSON-RPC": { unauthenticated: /^401 -32050 \+challenge$/, absent: /^200 -32001$/ },
  "0.3 HTTP+JSON": { unauthenticated: /^401 -32050 \+challenge$/, absent: /^404 -32001$/ },
  "0.2 HTTP": { unauthenticated: /^401 -32050 \+challenge$/, absent: /^404/ },
  "0.3 gRPC": { unauthenticated: /^UNAUTHENTICATED \+challenge$/, absent: /^NOT_FOUND$/ },
  "0.1 JSON-RPC": { unauthenticated: /^401 -32007 \+challenge$/, absent: /^200 -32001$/ },
  "tasks-rest": { unauthenticated: /^401 unauthenticated \+challenge$/, absent: /^404 task-not-found$/ },
};

/** An answer without what differs between any two. */
function bare({ text }: Answer, { taskId, configId }: Target): string {
  return text.replaceAll(taskId, "TASK").replaceAll(configId, "CONFIG").replace(TIMESTAMP, "TIME");
}

async function tryRow(row: Row): Promise<void> {
  const target = await createTarget();
  const absent: Target = { taskId: randomUUID(), configId: randomUUID(), contextId: randomUUID() };
  const before = await stateOf(target);
  const refusals = REFUSALS[row.binding];

  const answers: Record<string, string> = {};
  for (const caller of ["none", "wrong", "expired"] as const) {
    const refused = await row.ask(target, callers[caller]);
    answers[caller] = refused.brief;
    expect(refused.brief, caller).toMatch(refusals?.unauthenticated as RegExp);
    // Whether there is such a task is not for those to know who are not let in.
    expect(bare(await row.ask(absent, callers[caller]), absent), caller).toBe(bare(refused, target));
  }

  const other = await row.ask(target, callers.other);
  answers.other = other.brief;
  if (row.about === "caller") {
    expect(other.brief).toBe(row.right);
    expect(other.text).not.toContain(target.taskId);
    expect(other.text).not.toContain(target.contextId);
  } else if (row.taken !== undefined) {
    answers.other = row.taken;
    expect(other.brief).toBe(row.taken.split(",")[0]);
    expect(other.text).not.toContain(target.contextId);
  } else {
    expect(other.brief).toMatch(refusals?.absent as RegExp);
    expect(bare(await row.ask(absent, callers.other), absent)).toBe(bare(other, target));
  }
  expect(await stateOf(target)).toBe(before);

  const right = await row.ask(target, alice);
  answers.right = right.brief;
  expect(right.brief).toBe(row.right);
  expect(Object.keys(answers)).toEqual(COLUMNS);
  table.push(`| ${[row.binding, row.operation, ...Object.values(answers)].join(" | ")} |`);
}

describe("operations answer authorised callers only", () => {
  it.each(DIALECTS)("%s", async (dialect) => {
    const operations = rowsOf(dialect, server);
    expect(operations.length).toBeGreaterThan(5);
    for (const row of operations) {
      await tryRow(row).catch((error: unknown) => {
        throw new Error(`${row.binding} ${row.operation}`, { cause: error });
      });
    }
  });
});
