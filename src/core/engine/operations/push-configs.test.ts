import { describe, expect, test } from "vitest";
import type { Operation, PushConfigPage, TaskPushNotificationConfig } from "../../model/operation.ts";
import type { StoredDelivery } from "../../store/contract.ts";
import { toWebhook } from "../deliveries/webhook-route.ts";
import { agentOf, chunk, createGate, echo, messageAgent, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { type CallInput, callOf, framesOf, Harness } from "../testing/harness.ts";
import { createStoreGate, FlakyStore } from "../testing/stores.ts";

const HOOK = "https://hook.example/tasks";
const SECRETS = { token: "sesame", authentication: { scheme: "Bearer", credentials: "open" } };
const NO_TASK = { code: "TASK_NOT_FOUND" };
const STRANGERS: readonly CallInput[] = [{ owner: "bob" }, { tenant: "other" }, { agent: "other" }];

function create(harness: Harness, taskId: string, config: TaskPushNotificationConfig, asking: CallInput = {}) {
  const operation = { kind: "push-create" as const, taskId, config };
  return promptly(harness.engine.agent(asking.agent ?? "agent").dispatch(operation, callOf(asking)));
}

function get(harness: Harness, taskId: string, id: string, asking: CallInput = {}) {
  const operation = { kind: "push-get" as const, taskId, id };
  return promptly(harness.engine.agent(asking.agent ?? "agent").dispatch(operation, callOf(asking)));
}

type Paging = Pick<Extract<Operation, { kind: "push-list" }>, "pageSize" | "pageToken">;

function list(harness: Harness, taskId: string, paging: Paging = {}, asking: CallInput = {}): Promise<PushConfigPage> {
  const operation = { kind: "push-list" as const, taskId, ...paging };
  return promptly(harness.engine.agent(asking.agent ?? "agent").dispatch(operation, callOf(asking)));
}

function remove(harness: Harness, taskId: string, id: string, asking: CallInput = {}) {
  const operation = { kind: "push-delete" as const, taskId, id };
  return promptly(harness.engine.agent(asking.agent ?? "agent").dispatch(operation, callOf(asking)));
}

/** The configs of a task as their sender will get them, with what is kept beside. */
async function stored(harness: Harness, taskId: string) {
  const page = await harness.memory.deliveries(taskId, { group: "webhooks", limit: 1_000 });
  const beside = ({ taskId, createdAt, cursor }: StoredDelivery) => ({ taskId, createdAt, cursor });
  return page?.deliveries.map((delivery) => ({ ...toWebhook(delivery), ...beside(delivery) }));
}

const idsIn = ({ configs }: PushConfigPage) => configs.map(({ id }) => id);

const asker = agentOf(async function* () {
  yield status("TASK_STATE_INPUT_REQUIRED", "Which one?");
});

describe("a push config", () => {
  test("that is created gets an id, and is read back without its secrets", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id: taskId } = await harness.task("hello");
    const made = await create(harness, taskId, { url: HOOK, ...SECRETS });
    expect(made).toEqual({
      id: expect.stringMatching(/^push-/),
      taskId,
      url: HOOK,
      authentication: { scheme: "Bearer" },
    });
    expect(await get(harness, taskId, made.id ?? "")).toEqual(made);
    expect(await list(harness, taskId)).toEqual({ configs: [made], nextPageToken: "" });
    expect(await stored(harness, taskId)).toEqual([
      {
        id: made.id,
        taskId,
        url: HOOK,
        ...SECRETS,
        dialect: "test",
        createdAt: harness.clock.now(),
        cursor: (await harness.log(taskId)).length,
      },
    ]);
  });

  test("has the id it was given; the same id again replaces it", async () => {
    const harness = await Harness.start({ agent: asker });
    const { id: taskId } = await harness.task("hello");
    await create(harness, taskId, { id: "mine", url: HOOK, ...SECRETS });
    await create(harness, taskId, { id: "", url: HOOK });
    const again = await create(harness, taskId, { id: "mine", taskId: "ignored", url: "http://other.example" });
    expect(again).toEqual({ id: "mine", taskId, url: "http://other.example" });
    expect((await list(harness, taskId)).configs).toEqual([
      again,
      { id: expect.stringMatching(/^push-/), taskId, url: HOOK },
    ]);
    expect((await stored(harness, taskId))?.[0]).not.toHaveProperty("token");
  });

  test("that is not there is told with its task and id", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id: taskId } = await harness.task("hello");
    const metadata = { taskId, configId: "none" };
    await expect(get(harness, taskId, "none")).rejects.toMatchObject({ code: "TASK_NOT_FOUND", metadata });
  });

  test("may be deleted more than once", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id: taskId } = await harness.task("hello");
    await create(harness, taskId, { id: "one", url: HOOK });
    await create(harness, taskId, { id: "two", url: HOOK });
    expect(await remove(harness, taskId, "one")).toBeUndefined();
    expect(await remove(harness, taskId, "one")).toBeUndefined();
    await expect(get(harness, taskId, "one")).rejects.toMatchObject(NO_TASK);
    expect(idsIn(await list(harness, taskId))).toEqual(["two"]);
  });

  test("needs a task of the caller", async () => {
    const harness = await Harness.start({ agents: { agent: echo(), other: echo() } });
    const { id: taskId } = await harness.task("hello");
    await create(harness, taskId, { id: "one", url: HOOK });
    const places: [string, CallInput][] = [
      ["unknown", {}],
      ...STRANGERS.map((one): [string, CallInput] => [taskId, one]),
    ];
    for (const [where, asking] of places) {
      const unknown = { code: "TASK_NOT_FOUND", metadata: { taskId: where } };
      await expect(create(harness, where, { id: "one", url: "https://evil.example" }, asking)).rejects.toMatchObject(
        unknown,
      );
      await expect(get(harness, where, "one", asking)).rejects.toMatchObject(unknown);
      await expect(list(harness, where, {}, asking)).rejects.toMatchObject(unknown);
      await expect(remove(harness, where, "one", asking)).rejects.toMatchObject(unknown);
    }
    expect((await list(harness, taskId)).configs).toEqual([{ id: "one", taskId, url: HOOK }]);
  });

  test("follows a task that is being worked on from where its log stands", async () => {
    const gate = createGate();
    const agent = agentOf(async function* () {
      yield status("TASK_STATE_WORKING");
      await gate.pass();
      yield chunk("a", "late", false);
    });
    const harness = await Harness.start({ agent });
    const { id: taskId } = await harness.begin("hello");
    await gate.reached;
    await settle();
    await create(harness, taskId, { id: "one", url: HOOK });
    gate.open();
    await settle();
    await create(harness, taskId, { id: "two", url: HOOK });
    expect((await harness.log(taskId)).length).toBe(4);
    expect((await stored(harness, taskId))?.map(({ cursor }) => cursor)).toEqual([2, 4]);
  });

  test("is made once though the store lost the answer", async () => {
    const flaky = new FlakyStore();
    const harness = await Harness.start({ agent: echo(), wrap: flaky.wrap });
    const { id: taskId } = await harness.task("hello");
    flaky.fail(1, "after");
    const making = create(harness, taskId, { url: HOOK });
    await settle();
    await harness.clock.advance(1_000);
    const made = await making;
    expect(flaky.failures).toBe(1);
    expect((await list(harness, taskId)).configs).toEqual([made]);
  });
});

describe("a list of push configs", () => {
  test("comes in pages, in the order of creation", async () => {
    const harness = await Harness.start({ agent: echo(), limits: { pushConfigs: 200 } });
    const { id: taskId } = await harness.task("hello");
    const ids = Array.from({ length: 120 }, (_, index) => `c${(index * 7) % 120}`);
    for (const id of ids) await create(harness, taskId, { id, url: HOOK });
    const first = await list(harness, taskId);
    expect(idsIn(first)).toEqual(ids.slice(0, 50));
    expect(idsIn(await list(harness, taskId, { pageSize: 0 }))).toEqual(ids.slice(0, 50));
    const second = await list(harness, taskId, { pageToken: first.nextPageToken, pageSize: 7 });
    expect(idsIn(second)).toEqual(ids.slice(50, 57));
    expect(idsIn(await list(harness, taskId, { pageSize: 1_000 }))).toEqual(ids.slice(0, 100));
    const last = await list(harness, taskId, { pageToken: second.nextPageToken, pageSize: 100 });
    expect(idsIn(last)).toEqual(ids.slice(57));
    expect(last.nextPageToken).toBe("");
  });

  test("refuses tokens and sizes that are not its own", async () => {
    const harness = await Harness.start({ agent: asker });
    const { id: taskId } = await harness.task("hello");
    const { id: other } = await harness.task("hello");
    for (const id of ["a", "b"]) await create(harness, taskId, { id, url: HOOK });
    const { nextPageToken } = await list(harness, taskId, { pageSize: 1 });
    const bad = { code: "INVALID_PARAMS", violations: [{ field: "pageToken" }] };
    await expect(list(harness, other, { pageToken: nextPageToken })).rejects.toMatchObject(bad);
    await expect(list(harness, taskId, { pageToken: nextPageToken }, { owner: "bob" })).rejects.toMatchObject(bad);
    for (const pageToken of ["", "x", "bnVsbA", Buffer.from('["1","x"]').toString("base64url")]) {
      await expect(list(harness, taskId, { pageToken })).rejects.toMatchObject(bad);
    }
    for (const pageSize of [-1, 1.5, Number.NaN]) {
      const wrong = { code: "INVALID_PARAMS", violations: [{ field: "pageSize" }] };
      await expect(list(harness, taskId, { pageSize })).rejects.toMatchObject(wrong);
    }
  });
});

describe("what a push config may be", () => {
  const long = (length: number) => "x".repeat(length);
  const urlOf = (length: number) => `${HOOK}/`.padEnd(length, "x");

  test.each<[string, TaskPushNotificationConfig]>([
    ["url", { url: "" }],
    ["url", { url: "hook.example" }],
    ["url", { url: "/hook" }],
    ["url", { url: "ftp://hook.example/" }],
    ["url", { url: "file:///etc/passwd" }],
    ["url", { url: "javascript:alert(1)" }],
    ["url", { url: "https:hook.example" }],
    ["url", { url: "https:\\\\hook.example" }],
    ["url", { url: "https://" }],
    ["url", { url: "https://hook example/" }],
    ["url", { url: " https://hook.example/" }],
    ["url", { url: "https://hook.example/\n" }],
    ["url", { url: "https://hook.example:99999/" }],
    ["url", { url: "https://user@hook.example/" }],
    ["url", { url: "https://user:word@hook.example/" }],
    ["url", { url: urlOf(2_049) }],
    ["id", { id: long(1_025), url: HOOK }],
    ["token", { token: long(4_097), url: HOOK }],
    ["authentication.scheme", { authentication: { scheme: long(1_025) }, url: HOOK }],
    ["authentication.credentials", { authentication: { scheme: "Basic", credentials: long(4_097) }, url: HOOK }],
  ])("not a wrong %s: %j", async (field, config) => {
    const harness = await Harness.start({ agent: echo() });
    const { id: taskId } = await harness.task("hello");
    const refused = (path: string) => ({ code: "INVALID_PARAMS", violations: [{ field: path }] });
    await expect(create(harness, taskId, config)).rejects.toMatchObject(refused(field));
    const inline = refused(`configuration.taskPushNotificationConfig.${field}`);
    await expect(harness.send("again", { push: config })).rejects.toMatchObject(inline);
    await expect(harness.stream("again", { push: config })).rejects.toMatchObject(inline);
    expect((await harness.list()).totalSize).toBe(1);
    expect(harness.engine.load).toEqual({ tasks: 0, queued: 0, streams: 0 });
  });

  test.each<TaskPushNotificationConfig>([
    { url: "http://127.0.0.1:8080/a?b=c#d" },
    { url: "HTTPS://[::1]/" },
    { url: "https://münchen.example/ü" },
    { url: urlOf(2_048) },
    { id: long(1_024), url: HOOK, token: long(4_096), authentication: { scheme: "x", credentials: long(4_096) } },
  ])("anything else: %j", async (config) => {
    const harness = await Harness.start({ agent: echo() });
    const { id: taskId } = await harness.task("hello");
    expect((await create(harness, taskId, config)).url).toBe(config.url);
    expect(await stored(harness, taskId)).toMatchObject([config]);
  });

  test("no more of them than the limit, however they come, except in place of another", async () => {
    const harness = await Harness.start({ agent: asker, limits: { pushConfigs: 3 } });
    const { id: taskId } = await harness.task("hello", { push: { id: "a", url: HOOK } });
    const exhausted = { code: "RESOURCE_EXHAUSTED", metadata: { taskId, limit: "3" } };
    const made = await Promise.allSettled(["b", "c", "d", "e"].map((id) => create(harness, taskId, { id, url: HOOK })));
    expect(made.map((one) => one.status)).toEqual(["fulfilled", "fulfilled", "rejected", "rejected"]);
    await expect(create(harness, taskId, { url: HOOK })).rejects.toMatchObject(exhausted);
    await expect(harness.send("more", { taskId, push: { id: "f", url: HOOK } })).rejects.toMatchObject(exhausted);
    expect((await harness.get(taskId)).history?.map(({ role }) => role)).toEqual(["ROLE_USER"]);
    await create(harness, taskId, { id: "b", url: `${HOOK}/other` });
    await promptly(harness.task("more", { taskId, push: { id: "c", url: `${HOOK}/other` } }));
    await remove(harness, taskId, "a");
    await create(harness, taskId, { id: "g", url: HOOK });
    expect(idsIn(await list(harness, taskId))).toEqual(["b", "c", "g"]);
  });

  test("twenty of them for a task unless told otherwise", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id: taskId } = await harness.task("hello");
    for (let count = 0; count < 20; count++) await create(harness, taskId, { url: HOOK });
    await expect(create(harness, taskId, { url: HOOK })).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  });
});

describe("a push config that comes with a message", () => {
  test.each(["fail", "resume"] as const)("is there with the new task, from its first event (%s)", async (onCrash) => {
    const harness = await Harness.start({ agent: echo({ onCrash }) });
    const { id: taskId } = await promptly(harness.task("hello", { push: { url: HOOK, ...SECRETS } }));
    const [config] = (await list(harness, taskId)).configs;
    expect(config).toEqual({ id: expect.any(String), taskId, url: HOOK, authentication: { scheme: "Bearer" } });
    expect(await get(harness, taskId, config?.id ?? "")).toEqual(config);
    expect(await stored(harness, taskId)).toMatchObject([{ ...SECRETS, dialect: "test", cursor: 0 }]);
  });

  test("of a stream is there as soon as the task is", async () => {
    const gate = createGate();
    const agent = agentOf(async function* () {
      yield status("TASK_STATE_WORKING");
      await gate.pass();
    });
    const harness = await Harness.start({ agent });
    const stream = await promptly(harness.stream("hello", { push: { id: "mine", url: HOOK } }));
    await promptly(stream[Symbol.asyncIterator]().next());
    const [{ id: taskId } = { id: "" }] = (await harness.list()).tasks;
    expect(idsIn(await list(harness, taskId))).toEqual(["mine"]);
    gate.open();
    await promptly(framesOf(stream));
  });

  test("is in the same write as the task, and a send without one writes nothing of it", async () => {
    const held = createStoreGate();
    const harness = await Harness.start({ agent: echo(), wrap: held.wrap });
    await harness.task("with", { push: { id: "mine", url: HOOK } });
    await harness.task("without");
    const submits = held.gate.groups.flat().filter(({ kind }) => kind === "submit");
    expect(submits).toHaveLength(2);
    expect(submits[0]).toMatchObject({ deliveries: [{ id: "mine", address: HOOK, dialect: "test" }] });
    expect(submits[1]).not.toHaveProperty("deliveries");
    expect(held.gate.groups.flat().some(({ kind }) => kind === "delivery-put")).toBe(false);
  });

  test.each(["parked", "working"])("is kept with the message that continues a task: %s", async (how) => {
    const gate = createGate();
    const agent = agentOf(async function* () {
      if (how === "working") await gate.pass();
      yield status("TASK_STATE_INPUT_REQUIRED", "Which one?");
    });
    const harness = await Harness.start({ agent });
    const { id: taskId } = await harness.begin("hello");
    await settle();
    const before = (await harness.log(taskId)).length;
    const more = harness.send("more", { taskId, push: { taskId, id: "mine", url: HOOK } });
    await settle();
    gate.open();
    await promptly(more);
    expect(await stored(harness, taskId)).toMatchObject([{ id: "mine", cursor: before }]);
  });

  test("waits for a task whose first write is still under way", async () => {
    const held = createStoreGate();
    const harness = await Harness.start({ agent: asker, wrap: held.wrap });
    held.gate.hold();
    const first = harness.task("hello");
    const [write] = await held.gate.waiting();
    const taskId = write?.kind === "submit" ? write.id : "";
    const made = create(harness, taskId, { id: "one", url: HOOK });
    const more = harness.send("more", { taskId, push: { id: "two", url: HOOK } });
    await expect(create(harness, taskId, { url: HOOK }, { agent: "agent", owner: "bob" })).rejects.toMatchObject(
      NO_TASK,
    );
    held.gate.open();
    await promptly(Promise.all([first, made, more]));
    expect(idsIn(await list(harness, taskId))).toEqual(["one", "two"]);
  });

  test("of messages that come at the same time are all kept, in their order", async () => {
    const held = createStoreGate();
    const gate = createGate();
    const agent = agentOf(async function* () {
      yield status("TASK_STATE_WORKING");
      await gate.pass();
    });
    const harness = await Harness.start({ agent, wrap: held.wrap });
    const { id: taskId } = await harness.begin("hello");
    await gate.reached;
    await settle();
    held.gate.hold();
    const made = create(harness, taskId, { id: "earlier", url: HOOK });
    await held.gate.waiting();
    const sends = ["a", "b"].map((id) => harness.begin(id, { taskId, push: { id, url: HOOK } }));
    await settle();
    held.gate.open();
    await promptly(Promise.all([made, ...sends]));
    expect(idsIn(await list(harness, taskId))).toEqual(["earlier", "a", "b"]);
    gate.open();
    await settle();
  });

  test("goes with the task when the agent answers with a message", async () => {
    for (const key of [undefined, "key"]) {
      const held = createStoreGate();
      const harness = await Harness.start({ agent: messageAgent(), wrap: held.wrap });
      const push = { id: "mine", url: HOOK };
      const outcome = await promptly(harness.send("hello", key === undefined ? { push } : { push, key }));
      expect(outcome).toHaveProperty("message");
      const made = held.gate.groups.flat().flatMap((write) => (write.kind === "submit" ? [write.id] : []));
      expect(made).toHaveLength(key === undefined ? 0 : 1);
      for (const id of made) expect(await harness.memory.delivery(id, "webhooks", "mine")).toBeUndefined();
      expect((await harness.list()).totalSize).toBe(0);
    }
  });

  test("is not added by a repeat of the message", async () => {
    const harness = await Harness.start({ agent: echo() });
    const said = { key: "k", messageId: "m" };
    const { id: taskId } = await harness.task("hello", { ...said, push: { id: "one", url: HOOK } });
    expect((await harness.task("hello", { ...said, push: { id: "two", url: HOOK } })).id).toBe(taskId);
    expect(idsIn(await list(harness, taskId))).toEqual(["one"]);
  });

  test("survives a store that fails for a while", async () => {
    const flaky = new FlakyStore();
    const harness = await Harness.start({ agent: echo(), wrap: flaky.wrap });
    flaky.fail(2);
    const sent = harness.task("hello", { push: { id: "mine", url: HOOK } });
    await settle();
    await harness.clock.advance(1_000);
    const { id: taskId } = await promptly(sent);
    expect(flaky.failures).toBe(2);
    expect(idsIn(await list(harness, taskId))).toEqual(["mine"]);
  });

  test("cannot be for another task, nor for one that is not the caller's or has ended", async () => {
    const harness = await Harness.start({ agents: { agent: asker, other: asker, done: echo() } });
    const { id: taskId } = await harness.task("hello");
    const { id: ended } = await harness.task("hello", { agent: "done" });
    const field = "configuration.taskPushNotificationConfig.taskId";
    const elsewhere = { code: "INVALID_PARAMS", violations: [{ field }] };
    const push = { taskId, url: HOOK };
    await expect(harness.send("new", { push })).rejects.toMatchObject(elsewhere);
    await expect(harness.send("more", { taskId, push: { ...push, taskId: "x" } })).rejects.toMatchObject(elsewhere);
    for (const stranger of STRANGERS) {
      await expect(harness.send("more", { ...stranger, taskId, push })).rejects.toMatchObject(NO_TASK);
    }
    const late = harness.send("more", { agent: "done", taskId: ended, push: { url: HOOK } });
    await expect(late).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
    expect(await stored(harness, taskId)).toEqual([]);
    expect(await stored(harness, ended)).toEqual([]);
  });
});

test("push configs are there for the next process, and go with their task", async () => {
  const MINUTE = 60_000;
  const before = await Harness.start({ agent: echo() });
  const { id: taskId } = await before.task("hello", { push: { id: "mine", url: HOOK } });
  before.crash();
  const times = { pruneAfterMs: 5 * MINUTE, housekeepingMs: MINUTE };
  const after = await Harness.start({ agent: echo(), after: before, times });
  expect(idsIn(await list(after, taskId))).toEqual(["mine"]);
  await after.clock.advance(7 * MINUTE);
  await expect(list(after, taskId)).rejects.toMatchObject(NO_TASK);
  expect(await after.memory.delivery(taskId, "webhooks", "mine")).toBeUndefined();
});

test("an engine without push refuses configs in every way, for known and unknown tasks", async () => {
  const harness = await Harness.start({ agent: echo(), push: false });
  expect(harness.engine.push).toBe(false);
  const { id } = await harness.task("hello");
  const refused = { code: "PUSH_NOTIFICATION_NOT_SUPPORTED" };
  for (const taskId of [id, "unknown"]) {
    await expect(create(harness, taskId, { url: HOOK })).rejects.toMatchObject(refused);
    await expect(get(harness, taskId, "c")).rejects.toMatchObject(refused);
    await expect(list(harness, taskId)).rejects.toMatchObject(refused);
    await expect(remove(harness, taskId, "c")).rejects.toMatchObject(refused);
  }
  await expect(harness.send("more", { push: { url: HOOK } })).rejects.toMatchObject(refused);
  await expect(harness.stream("more", { push: { url: HOOK } })).rejects.toMatchObject(refused);
  expect((await harness.list()).totalSize).toBe(1);
});
