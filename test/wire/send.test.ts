import { expect, it } from "vitest";
import { describeStores } from "../support/scene.ts";
import { userMessage, WireStream } from "../support/wire-client.ts";
import { textOf, type WireTask } from "../support/wire-types.ts";

describeStores("sending", { agents: { slow: { timeout: 60 } } }, (scene) => {
  it("[CORE-SEND-001] is answered with a task or with a message, never both", async () => {
    const client = scene.client();
    const withTask = await client.call("SendMessage", { message: userMessage("artifact ok") });
    expect(Object.keys(withTask.result as object)).toEqual(["task"]);
    const withMessage = await client.call("SendMessage", { message: userMessage("reply hello") });
    expect(Object.keys(withMessage.result as object)).toEqual(["message"]);
  });

  it("leaves no task behind for a reply without one", async () => {
    const client = scene.client();
    const before = (await client.list()).totalSize;
    const reply = await client.message(userMessage("reply hello", { contextId: "talk" }));
    expect(reply).toMatchObject({ role: "ROLE_AGENT", contextId: "talk", parts: [{ text: "hello" }] });
    expect(reply.messageId).not.toBe("");
    expect(reply.taskId).toBeUndefined();
    expect((await client.list()).totalSize).toBe(before);
  });

  it("[CORE-EXECUTION-MODE-001, CORE-EXECUTION-MODE-003] waits for the end and gives all artifacts and the last status", async () => {
    const sent = scene.client().task("work; artifact first; hold blocking; chunks 300; work almost");
    await scene.stage.reached("blocking");
    let answered = false;
    void sent.then(() => {
      answered = true;
    });
    // A whole request goes there and back meanwhile.
    await scene.client().list({ status: "TASK_STATE_WORKING" });
    expect(answered).toBe(false);
    scene.stage.open("blocking");
    const task = await sent;
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts?.map(({ artifactId }) => artifactId)).toEqual(["output", "chunks"]);
    const expected = Array.from({ length: 300 }, (_, at) => `${at},`).join("");
    expect(textOf(task.artifacts?.[1]?.parts ?? [])).toBe(expected);
    expect(await scene.client().get(task.id)).toEqual(task);
  });

  it("[CORE-EXECUTION-MODE-002] returns at once when asked to", async () => {
    const started = await scene.client().start("work; hold immediate; artifact ok");
    expect(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]).toContain(started.status.state);
    scene.stage.open("immediate");
    expect((await scene.client().ended(started.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("[CORE-EXECUTION-MODE-002] gives a task even where the agent would only reply", async () => {
    const started = await scene.client().start("hold reply-later; reply hello");
    scene.stage.open("reply-later");
    const ended = await scene.client().ended(started.id);
    expect(ended.status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "hello" }] } });
  });

  it.each([
    ["input", "TASK_STATE_INPUT_REQUIRED"],
    ["auth", "TASK_STATE_AUTH_REQUIRED"],
  ])("[CORE-EXECUTION-MODE-004] returns when %s is required", async (verb, state) => {
    const task = await scene.client().task(`work; ${verb} Who are you?`);
    expect(task.status).toMatchObject({ state, message: { role: "ROLE_AGENT", parts: [{ text: "Who are you?" }] } });
    expect(task.status.message).toMatchObject({ taskId: task.id, contextId: task.contextId });
  });

  it("goes on with the same task after input was given", async () => {
    const asked = await scene.client().task("artifact draft; input Which colour?");
    const done = await scene.client().task(userMessage("artifact blue", { taskId: asked.id }));
    expect(done.id).toBe(asked.id);
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(done.artifacts).toEqual([expect.objectContaining({ parts: [{ text: "blue" }] })]);
    const said = done.history?.map(({ role, parts }) => `${role} ${textOf(parts)}`);
    expect(said).toEqual([
      "ROLE_USER artifact draft; input Which colour?",
      "ROLE_AGENT Which colour?",
      "ROLE_USER artifact blue",
    ]);
  });

  it("may ask again and again", async () => {
    let task = await scene.client().task("input 0?");
    for (let round = 1; round <= 5; round++) {
      task = await scene.client().task(userMessage(`input ${round}?`, { taskId: task.id }));
      expect(task.status.message?.parts).toEqual([{ text: `${round}?` }]);
    }
    expect(task.history?.filter(({ role }) => role === "ROLE_USER")).toHaveLength(6);
  });

  it("[AUTH-INTASK-001, AUTH-INTASK-005] goes on by itself once the caller has authenticated elsewhere, on streams that stay open", async () => {
    const stream = await scene.client().stream("work; auth Log in first.; hold login; work; artifact private");
    const { id } = await stream.task();
    await scene.stage.reached("login");
    const blocked = await scene.client().get(id);
    expect(blocked.status).toMatchObject({
      state: "TASK_STATE_AUTH_REQUIRED",
      message: { parts: [{ text: "Log in first." }] },
    });
    const subscribed = await scene.client().subscribe(id);
    expect((await subscribed.task()).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    scene.stage.open("login");
    const states = (await stream.rest()).flatMap(({ event }) => event.statusUpdate?.status.state ?? []);
    expect(states).toEqual([
      "TASK_STATE_WORKING",
      "TASK_STATE_AUTH_REQUIRED",
      "TASK_STATE_WORKING",
      "TASK_STATE_COMPLETED",
    ]);
    expect((await subscribed.rest()).at(-1)?.event.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await scene.client().get(id)).artifacts).toHaveLength(1);
  });

  it("takes a message while authentication is required", async () => {
    const asked = await scene.client().task("auth Log in first.");
    const done = await scene.client().task(userMessage("artifact done", { taskId: asked.id }));
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it.each([
    ["completed", "artifact ok"],
    ["failed", "fail no"],
    ["rejected", "reject no"],
    ["canceled", undefined],
  ])("[CORE-SEND-002] to a task that is %s is refused and changes nothing", async (_, script) => {
    const client = scene.client();
    let task: WireTask;
    if (script === undefined) task = await client.cancel((await client.start("work; hold never")).id);
    else task = await client.task(script);
    const message = userMessage("artifact late", { taskId: task.id });
    expect((await client.refusal("SendMessage", { message })).reason).toBe("UNSUPPORTED_OPERATION");
    const refused = await client.tryOpen("SendStreamingMessage", { message });
    expect(refused instanceof WireStream ? "a stream" : refused.reason).toBe("UNSUPPORTED_OPERATION");
    expect(await client.get(task.id)).toEqual(task);
  });

  it("[CORE-MULTI-004] to an unknown task is refused and creates none", async () => {
    const before = (await scene.client().list()).totalSize;
    const message = userMessage("artifact ok", { taskId: "made-up-by-the-client" });
    expect((await scene.client().refusal("SendMessage", { message })).reason).toBe("TASK_NOT_FOUND");
    expect(await scene.client().tryOpen("SendStreamingMessage", { message })).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
    expect((await scene.client().list()).totalSize).toBe(before);
    expect((await scene.client().refusal("GetTask", { id: "made-up-by-the-client" })).reason).toBe("TASK_NOT_FOUND");
  });

  it("[CORE-MULTI-003] gives every task an id of its own, also when messages share theirs", async () => {
    const message = userMessage("artifact ok");
    const tasks = await Promise.all(Array.from({ length: 40 }, () => scene.client().task(message)));
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(40);
    expect(tasks.map(({ id }) => id)).not.toContain(message.messageId);
  });

  it("[CORE-MULTI-001a] tells the context it made", async () => {
    const one = await scene.client().task("artifact ok");
    const other = await scene.client().task("artifact ok");
    expect(one.contextId).not.toBe("");
    expect(one.contextId).not.toBe(other.contextId);
    expect((await scene.client().message("reply hello")).contextId).toMatch(/./);
  });

  it("[CORE-MULTI-005] takes the context from the task", async () => {
    const asked = await scene.client().task("input more?");
    const done = await scene.client().task(userMessage("artifact ok", { taskId: asked.id }));
    expect(done.contextId).toBe(asked.contextId);
    for (const said of done.history ?? []) expect(said.contextId).toBe(asked.contextId);
  });

  it("[CORE-MULTI-006] refuses a context that is not the task's", async () => {
    const asked = await scene.client().task("input more?");
    const message = userMessage("artifact ok", { taskId: asked.id, contextId: "elsewhere" });
    expect((await scene.client().refusal("SendMessage", { message })).reason).toBe("INVALID_PARAMS");
    expect(await scene.client().get(asked.id)).toEqual(asked);
    const right = userMessage("artifact ok", { taskId: asked.id, contextId: asked.contextId });
    expect((await scene.client().task(right)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("[CORE-MULTI-002a] keeps the context the client chose, for all its tasks", async () => {
    for (const contextId of ["chosen", "with spaces / \u2713", "x".repeat(500)]) {
      const one = await scene.client().task(userMessage("artifact one", { contextId }));
      const two = await scene.client().task(userMessage("artifact two", { contextId }));
      expect([one.contextId, two.contextId]).toEqual([contextId, contextId]);
      expect((await scene.client().list({ contextId })).totalSize).toBe(2);
    }
  });

  it("[CORE-SEND-003] refuses content the agent does not take, before anything runs", async () => {
    const before = (await scene.client().list()).totalSize;
    const parts = [{ text: "artifact ok" }, { raw: "aGk=", mediaType: "image/png" }];
    const { reason, details } = await scene.client().refusal("SendMessage", { message: userMessage(parts) });
    expect(reason).toBe("CONTENT_TYPE_NOT_SUPPORTED");
    expect(details[0]?.metadata).toMatchObject({ mediaType: "image/png" });
    const withCharset = userMessage([{ text: "artifact ok", mediaType: "Text/Plain; charset=utf-8" }]);
    expect((await scene.client().task(withCharset)).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await scene.client().list()).totalSize).toBe(before + 1);
  });

  it("serialises messages to one task and loses none", async () => {
    const asked = await scene.client().task("input go?");
    const texts = Array.from({ length: 8 }, (_, at) => `work turn ${at}; artifact ${at}`);
    const first = userMessage("work; hold serial", { taskId: asked.id });
    const opened = scene.client().task(first);
    await scene.stage.reached("serial");
    const sent = texts.map((text) => scene.client().start(userMessage(text, { taskId: asked.id })));
    await Promise.all(sent);
    expect(scene.stage.started.filter((text) => texts.includes(text))).toEqual([]);
    scene.stage.open("serial");
    await opened;
    const done = await scene.client().ended(asked.id);
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    const ran = scene.stage.started.filter((text) => texts.includes(text));
    expect([...ran].sort()).toEqual([...texts].sort());
    const received = done.history?.filter(({ role }) => role === "ROLE_USER").map(({ parts }) => textOf(parts)) ?? [];
    expect(received.slice(2)).toEqual(ran);
    scene.stage.started.length = 0;
  });

  it("lets messages race to a waiting task: each is answered in turn or refused because the task has ended", async () => {
    const asked = await scene.client().task("input go?");
    const race = Array.from({ length: 10 }, (_, at) =>
      scene.client().call("SendMessage", { message: userMessage(`artifact race-${at}`, { taskId: asked.id }) }),
    );
    const answers = await Promise.all(race);
    const taken = answers.filter(({ error }) => error === undefined).length;
    expect(taken).toBeGreaterThan(0);
    for (const { error } of answers) if (error !== undefined) expect(error.reason).toBe("UNSUPPORTED_OPERATION");
    const ran = scene.stage.started.filter((text) => text.startsWith("artifact race-")).length;
    expect(ran).toBe(taken);
    const done = await scene.client().get(asked.id);
    expect(done.history?.filter(({ role }) => role === "ROLE_USER")).toHaveLength(1 + taken);
    scene.stage.started.length = 0;
  });

  it("fails the task of an agent that throws, without its words", async () => {
    const task = await scene.client().task("artifact half; throw the password is 1234");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task.status)).not.toContain("1234");
    expect(task.status.message?.parts[0]?.text).toMatch(/./);
    expect(task.artifacts).toHaveLength(1);
    const silent = await scene.client().task("throw at once");
    expect(silent.status.state).toBe("TASK_STATE_FAILED");
  });

  it("fails the task of an agent that takes too long, and ignores what it says later", async () => {
    const task = await scene.client("slow").task("work; deaf too-long; artifact late");
    expect(task.status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: expect.stringMatching(/0\.06 s/) }] },
    });
    scene.stage.open("too-long");
    expect(await scene.client("slow").get(task.id)).toEqual(task);
  });

  it("tells failure and rejection with their reasons", async () => {
    expect((await scene.client().task("fail no luck")).status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: "no luck" }] },
    });
    expect((await scene.client().task("reject not mine")).status).toMatchObject({
      state: "TASK_STATE_REJECTED",
      message: { parts: [{ text: "not mine" }] },
    });
  });
});
