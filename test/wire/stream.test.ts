import { expect, it } from "vitest";
import { readMetric, untilMetric } from "../support/metrics.ts";
import { openRequest, readAll, sendRaw } from "../support/raw-http.ts";
import { describeBindings, describeStores } from "../support/scene.ts";
import { statesOf, userMessage } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";

const OPEN = "dragoman_streams_open";

describeStores("streams", { agents: { mute: { streaming: false } } }, (scene, binding) => {
  it("[CORE-CAP-002] are refused by an agent that does not stream, without starting anything", async () => {
    const client = scene.client("mute");
    const started = await client.start("work; hold mute");
    for (const [method, params] of [
      ["SendStreamingMessage", { message: userMessage("artifact unseen") }],
      ["SubscribeToTask", { id: started.id }],
    ] as const) {
      expect(await client.tryOpen(method, params), method).toMatchObject({ reason: "UNSUPPORTED_OPERATION" });
    }
    expect(scene.stage.started).not.toContain("artifact unseen");
    await client.cancel(started.id);
  });

  it("[CORE-STREAM-002] of a reply are one event", async () => {
    const stream = await scene.client().stream("reply hello");
    const events = await stream.rest();
    expect(events).toEqual([
      {
        number: undefined,
        event: { message: expect.objectContaining({ role: "ROLE_AGENT", parts: [{ text: "hello" }] }) },
      },
    ]);
    expect(await readMetric(scene.server.url, OPEN)).toBe(0);
  });

  it("[CORE-STREAM-003] begin with the task and end with its last event", async () => {
    const events = await (await scene.client().stream("work busy; artifact ok; work more")).rest();
    expect(events[0]?.event.task?.status.state).toBe("TASK_STATE_SUBMITTED");
    expect(events[0]?.event.task?.history).toHaveLength(1);
    expect(events.slice(1).filter(({ event }) => event.task !== undefined)).toEqual([]);
    expect(statesOf(events)).toEqual(["SUBMITTED", "WORKING", "WORKING", "COMPLETED"]);
    expect(events.at(-1)?.event.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("number their events from 1, each once", async () => {
    const events = await (await scene.client().stream("work; chunks 40; artifact ok")).rest();
    expect(events.map(({ number }) => number)).toEqual(events.map((_, at) => at + 1));
  });

  it.each(["fail no", "reject no", "throw no"])("end with any terminal state (%s)", async (script) => {
    const events = await (await scene.client().stream(`work; ${script}`)).rest();
    expect(statesOf(events).at(-1)).toBe(script.startsWith("reject") ? "REJECTED" : "FAILED");
  });

  it("end when input is required, and a follow-up streams on from the task as it is", async () => {
    const asked = await (await scene.client().stream("work; input Which?")).rest();
    expect(statesOf(asked)).toEqual(["SUBMITTED", "WORKING", "INPUT_REQUIRED"]);
    const id = asked[0]?.event.task?.id ?? "";
    const answered = await (await scene.client().stream(userMessage("work; artifact this", { taskId: id }))).rest();
    expect(answered[0]?.event.task?.id).toBe(id);
    expect(statesOf(answered).at(-1)).toBe("COMPLETED");
    const numbers = answered.map(({ number }) => number ?? 0);
    expect(numbers[0]).toBeGreaterThan(asked.at(-1)?.number ?? 0);
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
  });

  it("carry the chunks of an artifact in order, the first replacing, the last marked", async () => {
    const events = await (await scene.client().stream("chunks 25")).rest();
    const updates = events.flatMap(({ event }) => event.artifactUpdate ?? []);
    expect(updates[0]?.append).toBeUndefined();
    expect(updates.slice(1).every(({ append }) => append === true)).toBe(true);
    expect(updates.at(-1)?.lastChunk).toBe(true);
    expect(updates.slice(0, -1).some(({ lastChunk }) => lastChunk === true)).toBe(false);
    const text = updates.map(({ artifact }) => textOf(artifact.parts)).join("");
    expect(text).toBe(Array.from({ length: 25 }, (_, at) => `${at},`).join(""));
  });

  it("[STREAM-SUB-001, STREAM-SUB-002] of a subscription begin with the task as it is and end with it", async () => {
    const started = await scene.client().start("work; artifact first; hold subscribed; artifact second");
    await scene.stage.reached("subscribed");
    const stream = await scene.client().subscribe(started.id);
    const first = await stream.next();
    expect(first?.event.task).toEqual(await scene.client().get(started.id));
    expect(first?.event.task?.artifacts).toHaveLength(1);
    scene.stage.open("subscribed");
    const rest = await stream.rest();
    expect(statesOf(rest)).toEqual(["COMPLETED"]);
    expect(rest.map(({ number }) => number)).toEqual(rest.map((_, at) => (first?.number ?? 0) + 1 + at));
  });

  it("[STREAM-SUB-001] of a subscription to a task that waits stay open until it has ended", async () => {
    const asked = await scene.client().task("input more?");
    const stream = await scene.client().subscribe(asked.id);
    expect(await stream.task()).toEqual(asked);
    const again = await scene.client().task(userMessage("input and more?", { taskId: asked.id }));
    expect(again.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await scene.client().task(userMessage("artifact done", { taskId: asked.id }));
    const states = statesOf(await stream.rest());
    expect(states).toEqual(["WORKING", "INPUT_REQUIRED", "WORKING", "COMPLETED"]);
  });

  it("[STREAM-SUB-003, STREAM-SUB-004] are refused for tasks that have ended or never were, as ordinary errors", async () => {
    const ended = await scene.client().task("artifact ok");
    const refused = await scene.client().call("SubscribeToTask", { id: ended.id });
    expect(refused.error?.reason).toBe("UNSUPPORTED_OPERATION");
    if (binding.http !== undefined) expect(refused.headers["content-type"]).toBe(binding.http.mediaType);
    const unknown = await scene.client().call("SubscribeToTask", { id: "no-such-task" });
    expect(unknown.error?.reason).toBe("TASK_NOT_FOUND");
    if (binding.http !== undefined) expect(unknown.headers["content-type"]).toBe(binding.http.mediaType);
    const bad = await scene.client().call("SendStreamingMessage", {});
    expect(bad.error?.reason).toBe("INVALID_PARAMS");
  });

  it("[STREAM-ORDER-003, STREAM-ORDER-004] of one task all have the same events; closing some leaves the rest", async () => {
    const first = await scene.client().stream("work; hold fan; chunks 60; work more; artifact ok");
    const { id } = await first.task();
    await scene.stage.reached("fan");
    const streams = await Promise.all(Array.from({ length: 6 }, () => scene.client().subscribe(id)));
    const snapshots = await Promise.all(streams.map((stream) => stream.next()));
    for (const snapshot of snapshots) expect(snapshot).toEqual(snapshots[0]);
    expect(await readMetric(scene.server.url, OPEN)).toBe(7);
    streams[0]?.close();
    streams[3]?.close();
    await untilMetric(scene.server.url, OPEN, 5);
    scene.stage.open("fan");
    const left = [1, 2, 4, 5].map((at) => streams[at]?.rest());
    const [whole, ...others] = await Promise.all([first.rest(), ...left]);
    const position = snapshots[0]?.number ?? 0;
    const expected = whole?.filter(({ number }) => (number ?? 0) > position);
    for (const events of others) expect(events).toEqual(expected);
    expect(statesOf(expected ?? []).at(-1)).toBe("COMPLETED");
    await untilMetric(scene.server.url, OPEN, 0);
  });

  it("[STREAM-LEAVE-001] may be left: the task goes on, and the reader's place is free at once", async () => {
    const stream = await scene.client().stream("work; hold left; chunks 30; artifact ok");
    const { id } = await stream.task();
    await scene.stage.reached("left");
    expect(await readMetric(scene.server.url, OPEN)).toBe(1);
    stream.close();
    await untilMetric(scene.server.url, OPEN, 0);
    expect((await scene.client().get(id)).status.state).toBe("TASK_STATE_WORKING");
    scene.stage.open("left");
    const ended = await scene.client().ended(id);
    expect(ended.status.state).toBe("TASK_STATE_COMPLETED");
    expect(ended.artifacts).toHaveLength(2);
  });

  it("[STREAM-LEAVE-001] a caller that leaves before a blocking answer does not stop the task either", async () => {
    const message = userMessage("work; hold gone; artifact ok", { contextId: `gone-${binding.name}` });
    const { answered, leave } = scene.client().begin("SendMessage", { message });
    const outcome = answered.then(
      () => "answered",
      () => "cut",
    );
    await scene.stage.reached("gone");
    leave();
    expect(await outcome).toBe("cut");
    scene.stage.open("gone");
    const [task] = (await scene.client().list({ contextId: `gone-${binding.name}` })).tasks;
    expect((await scene.client().ended(task?.id ?? "")).status.state).toBe("TASK_STATE_COMPLETED");
  });

  const { http } = binding;
  if (http !== undefined) {
    it("[STREAM-FRAME-001] have the headers and frames of their binding", async () => {
      const raw = http.request("SendStreamingMessage", { message: userMessage("work; artifact line\nbreak") });
      const reply = await openRequest(scene.server.url, raw);
      expect(reply.status).toBe(200);
      expect(reply.headers).toMatchObject({
        "content-type": "text/event-stream",
        "cache-control": "no-cache, private, no-store",
      });
      const text = (await readAll(reply.response)).toString("utf8");
      const blocks = text.split("\n\n");
      expect(blocks.pop()).toBe("");
      blocks.forEach((block, at) => {
        const [id, data, ...more] = block.split("\n");
        expect(id).toBe(`id: ${at + 1}`);
        expect(more).toEqual([]);
        expect(data).toMatch(
          binding.name === "JSON-RPC"
            ? /^data: \{"jsonrpc":"2.0","id":/
            : /^data: \{"(?:task|statusUpdate|artifactUpdate)":/,
        );
      });
      expect(blocks).toHaveLength(4);
    });
  }

  if (binding.name === "HTTP+JSON") {
    it("can be subscribed to with GET and with POST, with an empty body too", async () => {
      const started = await scene.client().start("work; hold verbs");
      await scene.stage.reached("verbs");
      const path = `/rest/tasks/${started.id}:subscribe`;
      const headers = { "a2a-version": "1.0" };
      const replies = [
        await openRequest(scene.server.url, { method: "GET", path, headers }),
        await openRequest(scene.server.url, { method: "POST", path, headers }),
        await openRequest(scene.server.url, { method: "POST", path, headers, body: "{}" }),
      ];
      for (const reply of replies) expect(reply.headers["content-type"]).toBe("text/event-stream");
      scene.stage.open("verbs");
      const texts = await Promise.all(replies.map(({ response }) => readAll(response)));
      expect(texts[0]?.toString()).toContain("TASK_STATE_COMPLETED");
      expect(texts[1]).toEqual(texts[0]);
      expect(texts[2]).toEqual(texts[0]);
    });

    it("do not open for HEAD", async () => {
      const started = await scene.client().start("work; hold head");
      await scene.stage.reached("head");
      const path = `/rest/tasks/${started.id}:subscribe`;
      const reply = await sendRaw(scene.server.url, { method: "HEAD", path, headers: { "a2a-version": "1.0" } });
      expect(reply.status).toBe(200);
      expect(reply.body.length).toBe(0);
      await untilMetric(scene.server.url, OPEN, 0);
      await scene.client().cancel(started.id);
    });
  }
});

describeBindings("silent streams", { times: { keepAliveMs: 30, showTaskAfterMs: 20 } }, (scene, binding) => {
  // Over gRPC, pings of HTTP/2 do this.
  if (binding.http !== undefined) {
    it("say that they are alive", async () => {
      const stream = await scene.client().stream("work; hold silent; artifact ok");
      await stream.task();
      await scene.stage.reached("silent");
      await stream.reader.comment();
      await stream.reader.comment();
      scene.stage.open("silent");
      expect(statesOf(await stream.rest()).at(-1)).toBe("COMPLETED");
      expect(new Set(stream.reader.comments)).toEqual(new Set(["keep-alive"]));
    });
  }

  it("show the task of an agent that gives no sign", async () => {
    const stream = await scene.client().stream("hold speechless; artifact ok");
    expect((await stream.task()).status.state).toBe("TASK_STATE_SUBMITTED");
    scene.stage.open("speechless");
    expect(statesOf(await stream.rest()).at(-1)).toBe("COMPLETED");
  });

  it("turn a late reply into the end of the task that was shown", async () => {
    const stream = await scene.client().stream("hold late-reply; reply hello");
    const { id } = await stream.task();
    scene.stage.open("late-reply");
    const rest = await stream.rest();
    expect(rest.at(-1)?.event.statusUpdate?.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "hello" }] },
    });
    expect((await scene.client().get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });
});
