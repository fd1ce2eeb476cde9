import { expect, test } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { Task, TaskState } from "../../model/task.ts";
import { ConnectionError } from "../errors.ts";
import { collect } from "../testing/fake-agent.ts";
import { type Script, scriptedAgent, streamOf } from "../testing/scripted-transport.ts";
import type { Attempt } from "../transport/transport.ts";

function task(state: TaskState): Task {
  return { id: "t1", contextId: "c1", status: { state } };
}

/** `get` is answered with one state after the other, the last one again and again. */
function states(...given: TaskState[]): (kind: string) => Attempt<Task> {
  return () => ({ ok: true, value: task((given.length > 1 ? given.shift() : given[0]) as TaskState) });
}

const statesOf = (events: readonly { readonly event: StreamEvent }[]) =>
  events.map(({ event }) => ("task" in event ? event.task.status.state : undefined));

const unknown = (code: "METHOD_NOT_FOUND" | "UNSUPPORTED_OPERATION"): Attempt<never> => {
  return { ok: false, error: new ProtocolError(code, "No."), transient: false, reach: "untaken" };
};

test("a dialect without subscribing is followed by polling; what has not changed is not reported again", async () => {
  const get = states(
    "TASK_STATE_WORKING",
    "TASK_STATE_WORKING",
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_COMPLETED",
  );
  const { agent, notices, tried } = scriptedAgent([
    { name: "a", lacks: ["subscribe"], script: ({ kind }) => get(kind) },
  ]);
  expect(statesOf(await collect(agent.subscribe("t1")))).toEqual([
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_COMPLETED",
  ]);
  expect(tried).toEqual(Array.from({ length: 6 }, () => "a get"));
  expect(notices.map(({ kind }) => kind)).toEqual(["fallback"]);
});

test("an abort ends the asking", async () => {
  const controller = new AbortController();
  const { agent } = scriptedAgent([
    { name: "a", lacks: ["subscribe"], script: () => states("TASK_STATE_WORKING")("") },
  ]);
  const reading = (async () => {
    for await (const _ of agent.subscribe("t1", { signal: controller.signal })) controller.abort();
  })();
  await expect(reading).rejects.toMatchObject({ code: "aborted" });
});

test("errors of asking come through", async () => {
  const script: Script = () => ({
    ok: false,
    error: new ProtocolError("TASK_NOT_FOUND", "No."),
    transient: false,
    reach: "unknown",
  });
  const { agent } = scriptedAgent([{ name: "a", lacks: ["subscribe"], script }]);
  await expect(collect(agent.subscribe("t1"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
});

test.each([
  [["subscribe"] as const, ["a stream", "a get", "a get"]],
  [[] as const, ["a stream", "a subscribe", "a get", "a get"]],
])(
  "a stream that ends early is followed by asking where nothing else is known, without %j",
  async (lacks, expected) => {
    const get = states("TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED");
    const { agent, tried } = scriptedAgent([
      {
        name: "a",
        lacks,
        script({ kind }) {
          if (kind === "stream") return streamOf({ task: task("TASK_STATE_SUBMITTED") });
          return kind === "subscribe" ? unknown("METHOD_NOT_FOUND") : get(kind);
        },
      },
    ]);
    expect(statesOf(await collect(agent.stream("x")))).toEqual([
      "TASK_STATE_SUBMITTED",
      "TASK_STATE_WORKING",
      "TASK_STATE_INPUT_REQUIRED",
    ]);
    expect(tried).toEqual(expected);
  },
);

test("a dialect without streaming sends, and asks for the task until it has ended", async () => {
  const get = states("TASK_STATE_WORKING", "TASK_STATE_COMPLETED");
  const { agent, tried } = scriptedAgent([
    {
      name: "a",
      lacks: ["stream", "subscribe"],
      script: ({ kind }) => (kind === "send" ? { ok: true, value: { task: task("TASK_STATE_WORKING") } } : get(kind)),
    },
  ]);
  expect(statesOf(await collect(agent.stream("x")))).toEqual(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
  expect(tried).toEqual(["a send", "a get", "a get"]);

  const forgetful = scriptedAgent([
    {
      name: "a",
      lacks: ["stream", "get"],
      script: () => ({ ok: true, value: { task: task("TASK_STATE_WORKING") } }),
    },
  ]);
  expect(await collect(forgetful.agent.stream("x"))).toHaveLength(1);
});

test("what the dialect in use cannot say is an error, although another interface could", async () => {
  const unsaid: Attempt<never> = {
    ok: false,
    error: new ProtocolError("UNSUPPORTED_OPERATION", "No word for it."),
    transient: false,
    reach: "unsaid",
  };
  const page = { tasks: [], nextPageToken: "", pageSize: 1, totalSize: 0 };
  const { agent, tried } = scriptedAgent([
    { name: "old", script: () => unsaid },
    { name: "new", script: () => ({ ok: true, value: page }) },
  ]);
  await expect(agent.listPage()).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION", message: "No word for it." });
  expect(tried).toEqual(["old list"]);

  const gone: Attempt<never> = {
    ok: false,
    error: new ConnectionError("unreachable", "Gone."),
    transient: true,
    reach: "untaken",
  };
  const three = scriptedAgent([
    { name: "gone", script: () => gone },
    { name: "old", script: () => unsaid },
    { name: "new", script: () => ({ ok: true, value: page }) },
  ]);
  expect(await three.agent.listPage()).toEqual(page);
  expect(three.agent.interface.binding).toBe("new");
  expect(three.tried).toEqual(["gone list", "old list", "new list"]);
});

test("while all interfaces are gone each round tries all of them, the one in use first", async () => {
  let rounds = 0;
  const gone = (name: string): Attempt<never> => {
    return {
      ok: false,
      error: new ConnectionError("unreachable", `${name} is gone.`),
      transient: true,
      reach: "untaken",
    };
  };
  const { agent, tried } = scriptedAgent([
    { name: "a", script: () => (++rounds < 3 ? gone("a") : { ok: true, value: task("TASK_STATE_COMPLETED") }) },
    { name: "b", script: () => gone("b") },
  ]);
  expect(await agent.get("t1")).toMatchObject({ id: "t1" });
  expect(tried).toEqual(["a get", "b get", "a get", "b get", "a get"]);
  rounds = -10;
  await expect(agent.get("t1")).rejects.toThrow("a is gone. Also tried: b 1.0.");
});

test("a stream that never began is tried as often as a request, one that broke more often", async () => {
  const stumbling: Attempt<never> = {
    ok: false,
    error: new ProtocolError("INTERNAL_ERROR", "Oh."),
    transient: true,
    reach: "unknown",
  };
  const never = scriptedAgent([{ name: "a", script: () => stumbling }]);
  await expect(collect(never.agent.subscribe("t1"))).rejects.toMatchObject({ code: "INTERNAL_ERROR" });
  expect(never.tried).toHaveLength(3);
  const broken = scriptedAgent([
    {
      name: "a",
      script: ({ kind }) => (kind === "stream" ? streamOf({ task: task("TASK_STATE_WORKING") }) : stumbling),
    },
  ]);
  await expect(collect(broken.agent.stream("x"))).rejects.toMatchObject({ code: "broken-stream", taskId: "t1" });
  // The task is read after every attempt: it may have ended meanwhile.
  expect(broken.tried).toEqual(["a stream", ...Array.from({ length: 4 }, () => ["a subscribe", "a get"]).flat()]);
});

test("a task whose stream cannot be resumed is polled to its end, and may be missing for a moment", async () => {
  const missing: Attempt<never> = {
    ok: false,
    error: new ProtocolError("TASK_NOT_FOUND", "No."),
    transient: false,
    reach: "unknown",
  };
  let reads = 0;
  const { agent } = scriptedAgent([
    {
      name: "a",
      script({ kind }) {
        if (kind === "stream") return streamOf({ task: task("TASK_STATE_WORKING") });
        if (kind === "subscribe") return unknown("UNSUPPORTED_OPERATION");
        reads++;
        if (reads === 2) return missing;
        return { ok: true, value: task(reads < 4 ? "TASK_STATE_WORKING" : "TASK_STATE_COMPLETED") };
      },
    },
  ]);
  const seen = statesOf(await collect(agent.stream("x")));
  expect(seen.at(-1)).toBe("TASK_STATE_COMPLETED");
  expect(reads).toBe(4);
});
