import { expect, it } from "vitest";
import { readMetric } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";
import { describeStores } from "../support/scene.ts";
import { type NumberedEvent, statesOf, userMessage, WireStream } from "../support/wire-client.ts";

const REPLAY = { "a2a-extensions": "urn:dragoman:ext:replay:v1" };
const from = (number: number | string) => ({ "last-event-id": String(number) });
const numbersOf = (events: readonly NumberedEvent[]) => events.map(({ number }) => number);
const range = (first: number, last: number) =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);

describeStores("replay", {}, (scene, binding) => {
  const { numbersUnasked } = binding.can;
  /** Who resumes without the extension gets the same events, but over gRPC not their numbers. */
  const unasked = (events: readonly NumberedEvent[]) =>
    numbersUnasked ? events : events.map(({ event }) => ({ number: undefined, event }));

  /** A task that has ended, with everything its stream said. */
  const recorded = async (script = "work; blocks 12; artifact ok") => {
    const events = await (await scene.client().stream(script)).rest();
    return { id: events[0]?.event.task?.id ?? "", events, last: events.at(-1)?.number ?? 0 };
  };

  it("gives the task as it stood at the cursor, then every number after it once", async () => {
    const { id, events, last } = await recorded();
    expect(last).toBe(16);
    for (const cursor of [1, 2, 3, 9, last - 1]) {
      const replayed = await (await scene.client().subscribe(id, from(cursor))).rest();
      expect(replayed, String(cursor)).toHaveLength(last - cursor + 1);
      if (numbersUnasked) expect(numbersOf(replayed)).toEqual(range(cursor, last));
      expect(Object.keys(replayed[0]?.event ?? {})).toEqual(["task"]);
      expect(replayed.slice(1)).toEqual(unasked(events.slice(cursor)));
    }
  });

  it("takes the snapshot from the log: state and artifacts are those of the cursor", async () => {
    const { id } = await recorded();
    const at = async (cursor: number) => (await scene.client().subscribe(id, from(cursor))).task();
    expect(await at(1)).toMatchObject({ id, status: { state: "TASK_STATE_SUBMITTED" } });
    expect((await at(1)).artifacts ?? []).toEqual([]);
    expect((await at(2)).status.state).toBe("TASK_STATE_WORKING");
    expect((await at(6)).artifacts?.[0]?.parts).toHaveLength(4);
    expect((await at(14)).artifacts?.[0]?.parts).toHaveLength(12);
    expect((await at(15)).artifacts).toHaveLength(2);
    expect(await at(16)).toEqual(await scene.client().get(id));
  });

  it("of a task that has ended replays to its end and closes; at the end there is only the snapshot", async () => {
    const { id, last } = await recorded();
    const events = await (await scene.client().subscribe(id, from(last))).rest();
    expect(events).toHaveLength(1);
    if (numbersUnasked) expect(numbersOf(events)).toEqual([last]);
    expect(events[0]?.event.task?.status.state).toBe("TASK_STATE_COMPLETED");
    const refused = await scene.client().tryOpen("SubscribeToTask", { id });
    expect(refused instanceof WireStream ? "a stream" : refused.reason).toBe("UNSUPPORTED_OPERATION");
  });

  it("tells an EventSource that has seen the end to stop, and gives it the rest before", async () => {
    const { id, last } = await recorded();
    const reconnect = async (path: string, cursor: number, headers: Record<string, string> = {}) => {
      const accept = "text/event-stream";
      return sendRaw(scene.server.url, { path, headers: { accept, "last-event-id": String(cursor), ...headers } });
    };
    for (const path of [`/rest/tasks/${id}:subscribe`, `/rest/v1/tasks/${id}:subscribe`, `/tasks/${id}/subscribe`]) {
      const ended = await reconnect(path, last);
      expect([path, ended.status, ended.body.length]).toEqual([path, 204, 0]);
      const rest = await reconnect(path, last - 1);
      expect([rest.status, rest.text]).toEqual([200, expect.stringContaining(`id: ${last}\n`)]);
    }
    const resumed = await reconnect(`/rest/tasks/${id}:subscribe`, last, { "a2a-version": "1.0", ...REPLAY });
    expect([resumed.status, resumed.text]).toEqual([200, ""]);
  });

  it("leaves the snapshot out when the extension asks for it", async () => {
    const { id, events, last } = await recorded();
    for (const cursor of [1, 7, last - 1, last]) {
      const stream = await scene.client().subscribe(id, { ...from(cursor), ...REPLAY });
      expect(stream.headers["a2a-extensions"]).toBe(REPLAY["a2a-extensions"]);
      expect(await stream.rest()).toEqual(events.slice(cursor));
    }
  });

  it("without a cursor begins with the task, whatever the extension says", async () => {
    const started = await scene.client().start("work; hold no-cursor");
    await scene.stage.reached("no-cursor");
    const stream = await scene.client().subscribe(started.id, REPLAY);
    expect((await stream.task()).id).toBe(started.id);
    scene.stage.open("no-cursor");
    await stream.rest();
  });

  it("goes on live where the log ends", async () => {
    const first = await scene.client().stream("work; blocks 5; hold half; blocks 5; artifact ok");
    const { id } = await first.task();
    await scene.stage.reached("half");
    const streams = [
      await scene.client().subscribe(id, from(3)),
      await scene.client().subscribe(id, { ...from(3), ...REPLAY }),
    ];
    scene.stage.open("half");
    const whole = await first.rest();
    const [withSnapshot = [], without = []] = await Promise.all(streams.map((stream) => stream.rest()));
    expect(without).toEqual(whole.slice(2));
    expect(withSnapshot.slice(1)).toEqual(unasked(whole.slice(2)));
    expect(withSnapshot[0]).toMatchObject({ event: { task: { id } } });
    if (numbersUnasked) expect(withSnapshot[0]?.number).toBe(3);
    expect(statesOf(whole).at(-1)).toBe("COMPLETED");
  });

  it("continues over a follow-up message, across the pause for input", async () => {
    const asked = await recorded("work; input more?");
    const stream = await scene.client().subscribe(asked.id, { ...from(2), ...REPLAY });
    expect((await stream.next())?.number).toBe(3);
    await scene.client().task(userMessage("work; artifact ok", { taskId: asked.id }));
    const rest = await stream.rest();
    expect(numbersOf(rest)).toEqual(range(4, rest.at(-1)?.number ?? 0));
    expect(statesOf(rest).at(-1)).toBe("COMPLETED");
  });

  it.each(["0", "-1", "1.5", "abc", "17", "999999", "1e1", "0x1", "99999999999999999999", "1, 2"])(
    "refuses the cursor %j, which is no number of this task",
    async (cursor) => {
      const { id } = await recorded();
      for (const headers of [from(cursor), { ...from(cursor), ...REPLAY }]) {
        const refused = await scene.client().tryOpen("SubscribeToTask", { id }, headers);
        expect(refused).toMatchObject({ reason: "INVALID_PARAMS" });
      }
      expect(await readMetric(scene.server.url, "dragoman_streams_open")).toBe(0);
    },
  );

  it("refuses a cursor on a task that is not there", async () => {
    const refused = await scene.client().tryOpen("SubscribeToTask", { id: "no-such-task" }, from(1));
    expect(refused).toMatchObject({ reason: "TASK_NOT_FOUND" });
  });

  it("resumes after every single event, and nothing is lost or doubled", async () => {
    const { events, id, last } = await recorded("work; blocks 8; work more; artifact ok");
    const pieced: NumberedEvent[] = [];
    let cursor = 1;
    while (cursor < last) {
      const stream = await scene.client().subscribe(id, { ...from(cursor), ...REPLAY });
      const next = await stream.next();
      stream.close();
      if (next === undefined) throw new Error("The stream ended early.");
      pieced.push(next);
      cursor = next.number ?? 0;
    }
    expect(pieced).toEqual(events.slice(1));
  });
});

describeStores("replay of a compacted log", { times: { compactAfterMs: 1, housekeepingMs: 20 } }, (scene, binding) => {
  it("gives the task as it is now for a cursor older than what is kept", async () => {
    const events = await (await scene.client().stream("work; blocks 30; artifact ok")).rest();
    const id = events[0]?.event.task?.id ?? "";
    const last = events.at(-1)?.number ?? 0;
    const replay = async () => (await scene.client().subscribe(id, from(2))).rest();
    let replayed = await replay();
    // Housekeeping runs on its own time; until it did, the whole log is there.
    while (replayed.length > 1) {
      expect(replayed).toHaveLength(last - 1);
      replayed = await replay();
    }
    if (binding.can.numbersUnasked) expect(replayed[0]?.number).toBe(last);
    expect(replayed[0]?.event.task).toEqual(await scene.client().get(id));
    expect(replayed[0]?.event.task?.status.state).toBe("TASK_STATE_COMPLETED");
  });
});
