import { expect, it } from "vitest";
import { BINDINGS } from "../support/bindings.ts";
import { untilMetric } from "../support/metrics.ts";
import { describeStores } from "../support/scene.ts";
import { statesOf, userMessage, WireClient } from "../support/wire-client.ts";

const EXTENSION = { "a2a-extensions": "urn:dragoman:ext:idempotency:v1" };

describeStores("idempotency", { agents: { other: {} } }, (scene, binding) => {
  let keys = 0;
  const newKey = () => ({ "idempotency-key": `key-${binding.name}-${++keys}` });
  const runsOf = (script: string) => scene.stage.started.filter((text) => text === script).length;

  it("without a key a repeated message is a new one", async () => {
    const message = userMessage("artifact unkeyed");
    const one = await scene.client().task(message);
    const two = await scene.client().task(message);
    expect(one.id).not.toBe(two.id);
    expect(runsOf("artifact unkeyed")).toBe(2);
  });

  it.each([
    ["the header", newKey()],
    ["the extension", EXTENSION],
  ])("by %s, a repeat gives the same task and runs nothing", async (name, headers) => {
    const script = `artifact by ${name}`;
    const message = userMessage(script);
    const one = await scene.client().task(message, {}, headers);
    const two = await scene.client().task(message, {}, headers);
    expect(two).toEqual(one);
    expect(runsOf(script)).toBe(1);
    const bare = await scene.client().task(message, { configuration: { historyLength: 0 } }, headers);
    expect(bare).toMatchObject({ id: one.id });
    expect("history" in bare).toBe(false);
  });

  it("by the extension, another message id is another message", async () => {
    const one = await scene.client().task(userMessage("artifact same words"), {}, EXTENSION);
    const two = await scene.client().task(userMessage("artifact same words"), {}, EXTENSION);
    expect(two.id).not.toBe(one.id);
  });

  it("refuses the same key for another message", async () => {
    const key = newKey();
    const one = await scene.client().task(userMessage("artifact first"), {}, key);
    const refused = await scene.client().call("SendMessage", { message: userMessage("artifact second") }, key);
    expect(refused.error?.reason).toBe("IDEMPOTENCY_CONFLICT");
    expect(refused.error?.code).toBe({ "JSON-RPC": -32054, "HTTP+JSON": 409, gRPC: 6 }[binding.name]);
    const streamed = await scene
      .client()
      .tryOpen("SendStreamingMessage", { message: userMessage("artifact third") }, key);
    expect(streamed).toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    expect(runsOf("artifact second") + runsOf("artifact third")).toBe(0);
    expect((await scene.client().get(one.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("runs concurrent duplicates once and answers all of them", async () => {
    const script = "work; hold together; artifact together";
    const [message, key] = [userMessage(script), newKey()];
    const sends = Array.from({ length: 10 }, () => scene.client().task(message, {}, key));
    await scene.stage.reached("together");
    const late = scene.client().task(message, {}, key);
    scene.stage.open("together");
    const tasks = await Promise.all([...sends, late]);
    for (const task of tasks) expect(task).toEqual(tasks[0]);
    expect(tasks[0]?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(runsOf(script)).toBe(1);
    expect((await scene.client().list({ contextId: tasks[0]?.contextId })).totalSize).toBe(1);
  });

  it("leaves no trace of the duplicates", async () => {
    const contextId = `trace-${binding.name}`;
    const message = userMessage("artifact once", { contextId });
    const key = newKey();
    await Promise.all(Array.from({ length: 20 }, () => scene.client().task(message, {}, key)));
    expect((await scene.client().list({ contextId })).totalSize).toBe(1);
    expect(runsOf("artifact once")).toBe(1);
  });

  it("gives a reply without a task again", async () => {
    const [message, key] = [userMessage("reply hello"), newKey()];
    const one = await scene.client().message(message, key);
    const two = await scene.client().message(message, key);
    expect(two).toEqual(one);
    expect(runsOf("reply hello")).toBe(1);
    const streamed = await (await scene.client().stream(message, {}, key)).rest();
    expect(streamed).toEqual([{ number: undefined, event: { message: one } }]);
  });

  it("answers a repeat that does not want to wait while the task runs", async () => {
    const [message, key] = [userMessage("work; hold impatient; artifact ok"), newKey()];
    const configuration = { returnImmediately: true };
    const one = await scene.client().task(message, { configuration }, key);
    await scene.stage.reached("impatient");
    const two = await scene.client().task(message, { configuration }, key);
    expect(two).toMatchObject({ id: one.id, status: { state: "TASK_STATE_WORKING" } });
    scene.stage.open("impatient");
    expect((await scene.client().task(message, {}, key)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("gives a repeated stream the log from its beginning", async () => {
    const [message, key] = [userMessage("work; chunks 5; artifact ok"), newKey()];
    const one = await (await scene.client().stream(message, {}, key)).rest();
    const two = await (await scene.client().stream(message, {}, key)).rest();
    expect(two).toEqual(one);
    expect(statesOf(one)).toEqual(["SUBMITTED", "WORKING", "COMPLETED"]);
    const task = await scene.client().task(message, {}, key);
    expect(task.id).toBe(one[0]?.event.task?.id);
  });

  it("holds for follow-ups to a task", async () => {
    const asked = await scene.client().task("input more?");
    const script = "work; input and now?";
    const [message, key] = [userMessage(script, { taskId: asked.id }), newKey()];
    const one = await scene.client().task(message, {}, key);
    const two = await scene.client().task(message, {}, key);
    expect(two).toEqual(one);
    expect(runsOf(script)).toBe(1);
    await scene.client().task(userMessage("artifact done", { taskId: asked.id }));
    const three = await scene.client().task(message, {}, key);
    expect(three).toMatchObject({ id: asked.id, status: { state: "TASK_STATE_COMPLETED" } });
  });

  it("recognises a message sent again over another binding, with its members in another order", async () => {
    const message = userMessage([{ text: "artifact both ways", mediaType: "text/plain" }], { contextId: "two-ways" });
    const reordered = Object.fromEntries(Object.entries(message).reverse());
    const key = newKey();
    const tasks = [];
    for (const other of BINDINGS) {
      for (const each of [message, reordered]) {
        tasks.push(await new WireClient(other, scene.server.url).task(each, {}, key));
      }
    }
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1);
  });

  it("runs concurrent duplicates of a stream once and streams to all of them", async () => {
    const script = "work; hold streams; blocks 5";
    const [message, key] = [userMessage(script), newKey()];
    const opened = Array.from({ length: 6 }, () => scene.client().stream(message, {}, key));
    await scene.stage.reached("streams");
    const streams = await Promise.all(opened);
    scene.stage.open("streams");
    const all = await Promise.all(streams.map((stream) => stream.rest()));
    for (const events of all) expect(events).toEqual(all[0]);
    expect(all[0]?.map(({ number }) => number)).toEqual(all[0]?.map((_, at) => at + 1));
    expect(runsOf(script)).toBe(1);
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
  });

  it("runs concurrent duplicates of a follow-up once", async () => {
    const asked = await scene.client().task("input more?");
    const script = "work; artifact followed";
    const [message, key] = [userMessage(script, { taskId: asked.id }), newKey()];
    const tasks = await Promise.all(Array.from({ length: 8 }, () => scene.client().task(message, {}, key)));
    for (const task of tasks) expect(task).toEqual(tasks[0]);
    expect(tasks[0]?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(tasks[0]?.history?.filter(({ role }) => role === "ROLE_USER")).toHaveLength(2);
    expect(runsOf(script)).toBe(1);
  });

  it("keeps the keys of agents and tenants apart", async () => {
    const [message, key] = [userMessage("artifact apart"), newKey()];
    const tasks = [
      await scene.client().task(message, {}, key),
      await scene.client("other").task(message, {}, key),
      await scene.client().task(message, { tenant: "blue" }, key),
    ];
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(3);
  });

  it("does not bind a key to a message that was refused", async () => {
    const key = newKey();
    const bad = userMessage([{ raw: "aGk=", mediaType: "image/png" }]);
    expect((await scene.client().refusal("SendMessage", { message: bad }, key)).reason).toBe(
      "CONTENT_TYPE_NOT_SUPPORTED",
    );
    expect((await scene.client().task(userMessage("artifact good"), {}, key)).status.state).toBe(
      "TASK_STATE_COMPLETED",
    );
  });
});

describeStores("idempotency that expires", { times: { idempotencyMs: 1, housekeepingMs: 20 } }, (scene) => {
  it("forgets a key after its time", async () => {
    const [message, key] = [userMessage("artifact again"), { "idempotency-key": "short" }];
    const first = await scene.client().task(message, {}, key);
    let next = first;
    // The clock moves on with every round trip, so a repeat becomes a new task soon.
    for (let attempt = 0; attempt < 1_000 && next.id === first.id; attempt++) {
      next = await scene.client().task(message, {}, key);
    }
    expect(next.id).not.toBe(first.id);
  });
});
