/** A task of another owner and one that never was take the same way through the server, whatever state the task is in. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import type { TaskStore } from "../../src/core/store/contract.ts";
import { openStore } from "../../src/core/store/open.ts";
import { type DragomanServer, serve } from "../../src/index.ts";
import { Stage } from "../support/stage.ts";
import { STORES } from "../support/store-specs.ts";
import { userMessage } from "../support/wire-client.ts";
import { type Answer, rpcResult } from "./ask.ts";
import { DIALECTS, rowsOf, type Target } from "./rows.ts";

const ALICE = "alice-key";
const BOB = "bob-key";

/** What a request may ask a store, other than whether there is work to do. */
const QUESTIONS = [
  "head",
  "snapshot",
  "list",
  "findIdempotencyRecord",
  "memory",
  "delivery",
  "deliveries",
  "storedBytes",
] as const;

/** A store that notes what it is asked and told, by kind. */
function counting(inner: TaskStore): { readonly store: TaskStore; readonly asked: string[] } {
  const asked: string[] = [];
  const noting =
    <Given extends readonly unknown[], Result>(name: string, call: (...given: Given) => Result) =>
    (...given: Given): Result => {
      asked.push(name);
      return call(...given);
    };
  const questions = QUESTIONS.map((name) => [name, noting(name, inner[name] as (...given: never) => unknown)]);
  const write: TaskStore["write"] = (writes) => {
    for (const { kind } of writes) asked.push(kind);
    return inner.write(writes);
  };
  return { store: { ...inner, ...Object.fromEntries(questions), write }, asked };
}

describe.each(STORES)("on $name", (spec) => {
  const stage = new Stage();
  let server: DragomanServer;
  let asked: string[];
  let remove = () => {};
  beforeAll(async () => {
    const created = spec.create();
    remove = created.remove;
    const opened =
      typeof created.store === "string"
        ? await openStore(created.store, { baseDirectory: process.cwd(), clock: systemClock, log: SILENT_LOG })
        : created.store;
    const counted = counting(opened);
    asked = counted.asked;
    server = await serve({
      port: 0,
      log: false,
      store: counted.store,
      agents: { stage: stage.agent() },
      auth: {
        apiKeys: [
          { key: ALICE, owner: "alice" },
          { key: BOB, owner: "bob" },
        ],
      },
      times: { drainMs: 0 },
    });
  });
  afterAll(async () => {
    await server.close();
    remove();
  });

  /** A task of alice's with a push config that has nothing to tell, so that nothing goes on while it is asked for. */
  async function createTarget(script: string): Promise<Target> {
    const configuration = { returnImmediately: script.startsWith("hold") };
    const params = { message: userMessage(script), configuration };
    const { task } = await rpcResult(server.url, "SendMessage", params, ALICE);
    if (script.startsWith("hold")) await stage.reached(script.slice("hold ".length));
    const config = { taskId: task.id, url: "https://hook.example/a" };
    const { id: configId } = await rpcResult(server.url, "CreateTaskPushNotificationConfig", config, ALICE);
    return { taskId: task.id, configId, contextId: task.contextId };
  }

  const SCRIPTS = { waiting: "input More?", working: "hold gate", ended: "artifact over" } as const;

  describe.each(Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[])("a task that is %s", (state) => {
    it.each(DIALECTS)("in %s", async (dialect) => {
      const target = await createTarget(SCRIPTS[state]);
      const absent: Target = { taskId: randomUUID(), configId: randomUUID(), contextId: randomUUID() };
      const about = rowsOf(dialect, server).filter((row) => row.about === "task" && row.taken === undefined);
      expect(about.length).toBeGreaterThan(3);
      for (const { operation, ask } of about) {
        const ways = [];
        for (const one of [target, absent]) {
          asked.length = 0;
          const answer = await ask(one, BOB);
          ways.push({ ...said(answer, one), asked: [...asked] });
        }
        const [hers, none] = ways;
        expect([operation, hers]).toEqual([operation, none]);
        expect(hers?.asked.length, operation).toBeGreaterThan(0);
      }
    });
  });
});

/** Ids are as long as each other, so that what is left is the same to the byte. */
function said({ brief, text }: Answer, { taskId, configId }: Target) {
  return { brief, text: text.replaceAll(taskId, "TASK").replaceAll(configId, "CONFIG").replace(TIMESTAMP, "TIME") };
}

const TIMESTAMP = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
