/** Every operation of every dialect, asked by those who may and those who may not. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DragomanServer, serve } from "../../src/server/serve.ts";
import { Issuer } from "../support/issuer.ts";
import { Stage } from "../support/stage.ts";
import { type Answer, askHttp, type Row, type Target } from "./ask-http.ts";
import { DIALECTS, Rows } from "./rows.ts";
import { COLUMNS, renderTable, type Seen } from "./table.ts";

const TIMESTAMP = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

let issuer: Issuer;
let server: DragomanServer;
let alice: string;
const callers: Record<"none" | "wrong" | "expired" | "other", string | undefined> = {
  none: undefined,
  wrong: undefined,
  expired: undefined,
  other: undefined,
};
let rows: Rows;
const seen: Seen[] = [];

beforeAll(async () => {
  issuer = await Issuer.start();
  server = await serve({
    port: 0,
    log: false,
    agents: { stage: new Stage().agent({ extended: { description: "For those who are known." } }) },
    auth: { jwt: { issuer: issuer.url, audience: issuer.audience } },
    limits: { failedLogins: 100_000 },
    times: { drainMs: 0 },
  });
  rows = new Rows(server);
  alice = await issuer.token("alice");
  callers.wrong = await issuer.token("alice", { forged: true });
  callers.expired = await issuer.token("alice", { lasts: -60 });
  callers.other = await issuer.token("bob");
});

afterAll(async () => {
  rows.close();
  await server.close();
  process.stdout.write(renderTable(seen));
});

/** A task of alice's that waits for an answer and has a push config. */
async function createTarget(): Promise<Target> {
  const rpc = async (method: string, params: object) => {
    const body = { jsonrpc: "2.0", id: 1, method, params };
    const request = { method: "POST", path: "", headers: { "a2a-version": "1.0" }, body };
    const { text } = await askHttp(server.url, request, alice);
    return JSON.parse(text).result;
  };
  const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "input More?" }] };
  const { task } = await rpc("SendMessage", { message });
  const config = await rpc("CreateTaskPushNotificationConfig", { taskId: task.id, url: "https://hook.example/a" });
  return { taskId: task.id, configId: config.id, contextId: task.contextId };
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
  expect(Object.keys(answers)).toEqual([...COLUMNS]);
  seen.push({ binding: row.binding, operation: row.operation, answers });
}

describe("operations answer those who may ask, and nobody else", () => {
  it.each(DIALECTS)("%s", async (dialect) => {
    const operations = rows.of(dialect);
    expect(operations.length).toBeGreaterThan(5);
    for (const row of operations) {
      await tryRow(row).catch((error: unknown) => {
        throw new Error(`${row.binding} ${row.operation}`, { cause: error });
      });
    }
  });
});
