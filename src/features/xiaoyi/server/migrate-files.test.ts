import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { echo } from "../../../core/engine/testing/agents.ts";
import { Harness } from "../../../core/engine/testing/harness.ts";
import type { LogFields } from "../../../core/model/ports.ts";
import { createBindings } from "./accounts.ts";
import { migrateFiles } from "./migrate-files.ts";
import { addDevice, devicesOf } from "./notify/devices.ts";
import { createRecordMap, SPACES } from "./record-map.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-migrate-files-"));
});
afterEach(() => rm(folder, { recursive: true }));

const logged: [LogFields, string][] = [];
const note = (fields: LogFields, message: string) => void logged.push([fields, message]);
const log = { debug: note, info: note, warn: note, error: note };

/** As earlier versions wrote it. */
function write(name: string, entries: unknown): Promise<void> {
  return writeFile(join(folder, `data.db.xiaoyi-${name}.json`), JSON.stringify(entries), { mode: 0o600 });
}

async function migrate(harness: Harness): Promise<void> {
  const { engine } = harness;
  await migrateFiles(join(folder, "data.db"), {
    http: [
      { agent: "agent", owner: "alice", apiKey: "k", push: { apiId: "api" } },
      { agent: "agent", apiKey: "l" },
    ],
    links: [{ agent: "agent", agentId: "agent-1", ak: "a", sk: "s", owner: "alice" }],
    host: {
      agents: new Map([["agent", engine.agent("agent")]]),
      records: engine.records,
      replies: engine.replies,
    },
    defaultOwner: () => "nobody",
    clock: harness.clock,
    log,
  });
}

const scoped = (names: readonly string[], id: string) => JSON.stringify([JSON.stringify(names), id]);
const entry = JSON.stringify(["xiaoyi-http", "agent", "alice", "api"]);

describe("files beside the store", () => {
  it("are imported as records and renamed", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { records } = harness.engine;
    await write("logins", [[JSON.stringify(["agent", "alice", "login"]), { sub: "u-1" }]]);
    await write("phones", [[JSON.stringify([entry, "s"]), [{ pushId: "phone", loginSessionId: null }]]]);
    await write("contexts", [[scoped(["agent-1"], "session"), "context-1"]]);
    await write("http-contexts", [[scoped(["agent", "alice"], "session"), "context-2"]]);
    await write("told", [["phone", 5]]);
    await migrate(harness);
    expect(await createBindings(() => records, "agent", "alice").find("login")).toEqual({ sub: "u-1" });
    expect(await devicesOf(records, JSON.stringify([entry, "s"]))).toEqual([{ pushId: "phone" }]);
    const contexts = createRecordMap(() => records, SPACES.linkContexts("agent-1"), log);
    expect(await contexts.entries()).toEqual([["session", "context-1"]]);
    const httpContexts = createRecordMap(() => records, SPACES.httpContexts("agent", "alice"), log);
    expect(await httpContexts.get("session")).toBe("context-2");
    expect((await readdir(folder)).filter((name) => !name.endsWith(".json.migrated"))).toEqual([]);
    await records.delete(SPACES.logins, JSON.stringify(["agent", "alice", "login"]));
    await migrate(harness);
    expect(await createBindings(() => records, "agent", "alice").find("login")).toBeUndefined();
  });

  it("become deliveries of the tasks whose answers are owed, from their beginning", async () => {
    const harness = await Harness.start({ agent: echo() });
    const tasks = new Map<string, string>();
    for (const name of ["left", "read", "linked", "removed"]) {
      const link = { agentId: "agent-1", sessionId: "s", taskId: "platform", requestId: "r", at: 7, frames: ["f"] };
      const metadata = { "urn:dragoman:ext:xiaoyi:v1": { link: { ...link, server: "main", desktop: true } } };
      const message = { messageId: name, role: "ROLE_USER" as const, parts: [{ text: name }], metadata };
      const call = { caller: { owner: "alice", authenticated: true }, tenant: "", extensions: [], dialect: "test" };
      const outcome = await harness.engine.agent("agent").dispatch({ kind: "send", message }, call);
      if ("task" in outcome) tasks.set(name, outcome.task.id);
    }
    const idOf = (name: string) => tasks.get(name) ?? "";
    const http = ["xiaoyi-http", "agent", "alice"];
    await write("awaited", [[JSON.stringify([entry, idOf("left")]), { sessionId: "s", since: 5 }]]);
    await write("unanswered", [
      [scoped(http, idOf("read")), "s"],
      [scoped(["xiaoyi-link", "agent-1", "alice"], idOf("linked")), "s"],
      [scoped(["xiaoyi-link", "agent-2", "alice"], idOf("removed")), "s"],
      [scoped(["xiaoyi-http", "agent", "nobody"], idOf("removed")), "s"],
      [scoped(http, "unknown"), "s"],
    ]);
    await migrate(harness);
    const deliveryOf = async (name: string) =>
      (await harness.memory.delivery(idOf(name), "replies", "answer"))?.delivery;
    const notification = { route: `xiaoyi-notifications:${entry}`, wants: "outcome", cursor: 0 };
    const left = await deliveryOf("left");
    expect(left).toMatchObject(notification);
    expect(JSON.parse(left?.address ?? "")).toEqual({ sessionId: "s", since: 5 });
    expect(await deliveryOf("read")).toMatchObject(notification);
    const linked = await deliveryOf("linked");
    expect(linked).toMatchObject({ route: "xiaoyi-link:agent-1", wants: "events", cursor: 0 });
    expect(JSON.parse(linked?.address ?? "")).toEqual({
      sessionId: "s",
      taskId: "platform",
      requestId: "r",
      server: "main",
      desktop: true,
      at: 7,
      frames: ["f"],
      receiver: "",
    });
    expect(await deliveryOf("removed")).toBeUndefined();
  });

  it("that are damaged are put aside and reported", async () => {
    const harness = await Harness.start({ agent: echo() });
    for (const [name, content] of Object.entries({ logins: "not JSON", phones: "{}", contexts: "[[1,2]]" })) {
      await writeFile(join(folder, `data.db.xiaoyi-${name}.json`), content);
    }
    logged.length = 0;
    await migrate(harness);
    expect((await readdir(folder)).every((name) => name.endsWith(".json.damaged"))).toBe(true);
    expect(await readFile(join(folder, "data.db.xiaoyi-logins.json.damaged"), "utf8")).toBe("not JSON");
    expect(logged).toHaveLength(3);
  });

  it.each([
    ["contexts", ["not a scoped key", "c"]],
    ["contexts", [JSON.stringify(["not JSON", "x"]), "c"]],
    ["awaited", [JSON.stringify([entry, "t"]), null]],
    ["unanswered", ["1", "s"]],
  ])("of which one entry cannot be read (%s: %j) are imported without it", async (name, bad) => {
    const harness = await Harness.start({ agent: echo() });
    const good = [scoped(["agent-1"], "session"), "context"];
    await write(name, name === "contexts" ? [bad, good] : [bad]);
    logged.length = 0;
    await migrate(harness);
    expect(logged.map(([, message]) => message)).toContain("An entry of a file beside the store cannot be imported.");
    const contexts = createRecordMap(() => harness.engine.records, SPACES.linkContexts("agent-1"), log);
    expect(await contexts.get("session")).toBe(name === "contexts" ? "context" : undefined);
    expect(await readdir(folder)).toEqual([`data.db.xiaoyi-${name}.json.migrated`]);
  });
});

describe("damaged records", () => {
  it("of cleared conversations count as absent", async () => {
    const { records } = (await Harness.start({ agent: echo() })).engine;
    const space = SPACES.linkContexts("a");
    await records.put({ space, key: "s", value: "not JSON" });
    await records.put({ space, key: "t", value: '"context"' });
    const map = createRecordMap(() => records, space, log);
    expect(await map.entries()).toEqual([["t", "context"]]);
    expect(await map.get("s")).toBeUndefined();
  });

  it.each(['{"a":1}', "null", "not JSON", "[1,null]"])("of devices (%s) are replaced", async (value) => {
    const { records } = (await Harness.start({ agent: echo() })).engine;
    await records.put({ space: SPACES.devices, key: "u", value });
    await addDevice(records, "u", { pushId: "p" });
    expect(await devicesOf(records, "u")).toEqual([{ pushId: "p" }]);
  });
});
