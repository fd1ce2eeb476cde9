import { expect, it } from "vitest";
import type { Params } from "../support/bindings.ts";
import { describeStores } from "../support/scene.ts";
import { userMessage, type WireClient } from "../support/wire-client.ts";
import type { WireTask } from "../support/wire-types.ts";

/** All pages of a list; `between` is called after each. */
async function walk(client: WireClient, params: Params, between: () => Promise<unknown> = async () => {}) {
  const seen: WireTask[] = [];
  let pageToken = "";
  do {
    const page = await client.list(pageToken === "" ? params : { ...params, pageToken });
    seen.push(...page.tasks);
    pageToken = page.nextPageToken;
    await between();
  } while (pageToken !== "");
  return seen;
}

const ids = (tasks: readonly WireTask[]) => tasks.map(({ id }) => id);

describeStores("lists", { agents: { other: {} } }, (scene, binding) => {
  const make = (contextId: string, count: number, script = "artifact ok") =>
    Promise.all(Array.from({ length: count }, () => scene.client().task(userMessage(script, { contextId }))));

  it("[AUTH-SCOPE-002] hold the tasks of this agent only, with and without filters", async () => {
    const elsewhere = await scene.client("other").task(userMessage("artifact ok", { contextId: "shared" }));
    const here = await scene.client().task(userMessage("artifact ok", { contextId: "shared" }));
    expect(ids((await scene.client().list({ contextId: "shared" })).tasks)).toEqual([here.id]);
    expect(ids(await walk(scene.client(), {}))).not.toContain(elsewhere.id);
    expect(ids((await scene.client("other").list()).tasks)).toEqual([elsewhere.id]);
  });

  it("[CORE-LIST-003] are ordered by the time of the status, newest first", async () => {
    await make("ordered", 12);
    const first = await scene.client().task(userMessage("input more?", { contextId: "ordered" }));
    await make("ordered", 6);
    const touched = await scene.client().task(userMessage("artifact ok", { taskId: first.id }));
    const tasks = await walk(scene.client(), { contextId: "ordered", pageSize: 5 });
    expect(tasks).toHaveLength(19);
    expect(tasks[0]?.status.timestamp).toBe(touched.status.timestamp);
    const times = tasks.map(({ status }) => status.timestamp);
    expect(times).toEqual([...times].sort().reverse());
    expect(ids(tasks)).toEqual(ids((await scene.client().list({ contextId: "ordered", pageSize: 100 })).tasks));
  });

  it("[CORE-LIST-002] can be walked page by page, each task once", async () => {
    const made = await make("walked", 23);
    for (const pageSize of [1, 7, 22, 23, 24, 100]) {
      const seen = await walk(scene.client(), { contextId: "walked", pageSize });
      expect(ids(seen).sort(), String(pageSize)).toEqual(ids(made).sort());
    }
  });

  it("[CORE-LIST-002] can be walked while tasks come and change: none twice, none left out that was there", async () => {
    const still = await make("moving", 10);
    const waiting = await make("moving", 6, "input more?");
    const later = await make("moving", 10);
    let round = 0;
    const seen = await walk(scene.client(), { contextId: "moving", pageSize: 4 }, async () => {
      const next = waiting[round++];
      if (next !== undefined) await scene.client().task(userMessage("artifact done", { taskId: next.id }));
      if (round < 5) await make("moving", 1);
    });
    const found = ids(seen);
    expect(new Set(found).size).toBe(found.length);
    for (const { id } of [...still, ...waiting, ...later]) expect(found).toContain(id);
  });

  it("[CORE-LIST-004] have all four members, also when they are empty and on the last page", async () => {
    const none = await scene.client().call("ListTasks", { contextId: "nowhere" });
    expect(none.result).toEqual({ tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 });
    await make("counted", 5);
    const first = await scene.client().list({ contextId: "counted", pageSize: 3 });
    expect(first).toMatchObject({ pageSize: 3, totalSize: 5 });
    expect(first.nextPageToken).not.toBe("");
    const last = await scene.client().list({ contextId: "counted", pageSize: 3, pageToken: first.nextPageToken });
    expect(last).toMatchObject({ pageSize: 3, totalSize: 5, nextPageToken: "" });
    expect([first.tasks.length, last.tasks.length]).toEqual([3, 2]);
    const exact = await scene.client().list({ contextId: "counted", pageSize: 5 });
    expect([exact.tasks.length, exact.nextPageToken]).toEqual([5, ""]);
  });

  it("have as many tasks as usual where a size of zero may stand for none", async () => {
    const { error, result } = await scene.client().call("ListTasks", { contextId: "nowhere", pageSize: 0 });
    if (binding.name === "gRPC") expect(result).toMatchObject({ pageSize: 50, totalSize: 0 });
    else expect(error?.reason).toBe("INVALID_PARAMS");
  });

  it("[CORE-LIST-005] show artifacts only when asked", async () => {
    const [task] = await make("artifacts", 1);
    for (const params of [{}, { includeArtifacts: false }]) {
      const { tasks } = await scene.client().list({ contextId: "artifacts", ...params });
      expect("artifacts" in (tasks[0] ?? {})).toBe(false);
    }
    const { tasks } = await scene.client().list({ contextId: "artifacts", includeArtifacts: true });
    expect(tasks).toEqual([task]);
  });

  const misfits: [string, unknown][] = [
    ["pageSize", "many"],
    ["pageSize", 1.5],
    ["status", "TASK_STATE_DREAMING"],
    ["status", "completed"],
    ["historyLength", "all"],
    ["statusTimestampAfter", "yesterday"],
    ["statusTimestampAfter", "2026-13-01T00:00:00Z"],
    ["includeArtifacts", "perhaps"],
  ];
  it.each<[string, unknown]>([
    ...(binding.can.anyJson ? misfits : []),
    ["pageSize", 101],
    ["pageSize", -1],
    ["pageToken", "not a token"],
    ["pageToken", Buffer.from("[]").toString("base64url")],
    ["pageToken", Buffer.from('{"__proto__":1}').toString("base64url")],
    ["historyLength", -1],
  ])("[CORE-LIST-006] refuse %s %j and name it", async (field, value) => {
    const { reason, details } = await scene.client().refusal("ListTasks", { [field]: value });
    expect(reason).toBe("INVALID_PARAMS");
    const fields = details.flatMap(({ fieldViolations = [] }) => fieldViolations.map((violation) => violation.field));
    expect(fields).toEqual([field]);
  });

  it("[CORE-LIST-006] refuse a token of another list", async () => {
    await make("tokens", 3);
    const { nextPageToken: pageToken } = await scene.client().list({ contextId: "tokens", pageSize: 1 });
    for (const other of [{}, { contextId: "ordered" }, { contextId: "tokens", status: "TASK_STATE_FAILED" }]) {
      expect((await scene.client().refusal("ListTasks", { ...other, pageToken })).reason).toBe("INVALID_PARAMS");
    }
    const wider = await scene.client().list({ contextId: "tokens", pageSize: 100, pageToken });
    expect(wider.tasks).toHaveLength(2);
  });

  it("[CORE-LIST-006] refuse a token of the form that earlier versions gave out", async () => {
    await make("earlier", 2);
    const { nextPageToken } = await scene.client().list({ contextId: "earlier", pageSize: 1 });
    const [timestamp, id, , binding] = JSON.parse(Buffer.from(nextPageToken, "base64url").toString("utf8"));
    const pageToken = Buffer.from(JSON.stringify([timestamp, id, 7, binding])).toString("base64url");
    expect((await scene.client().refusal("ListTasks", { contextId: "earlier", pageToken })).reason).toBe(
      "INVALID_PARAMS",
    );
  });

  it("[CORE-LIST-006] answer a token that was tampered with by refusing it or by a page, never by breaking", async () => {
    await make("forged", 3);
    const { nextPageToken } = await scene.client().list({ contextId: "forged", pageSize: 1 });
    const place = JSON.parse(Buffer.from(nextPageToken, "base64url").toString("utf8")) as unknown[];
    const numbers = ["1e308", "1e999", "-1", "0.5", "-1e999", "9007199254740993", "123456789012345678901234567890"];
    const texts = ['""', '"\\u0000"', '"\\ud800"', `"${"x".repeat(5_000)}"`, '"\' OR 1=1 --"', "null", "{}", "[[]]"];
    for (let at = 0; at < place.length; at++) {
      for (const forged of [...numbers, ...texts]) {
        const json = `[${place.map((value, index) => (index === at ? forged : JSON.stringify(value))).join()}]`;
        const pageToken = Buffer.from(json).toString("base64url");
        const { error, result } = await scene.client().call("ListTasks", { contextId: "forged", pageToken });
        if (error === undefined) expect(result).toMatchObject({ totalSize: 3 });
        else expect(error.reason, json).toBe("INVALID_PARAMS");
      }
    }
  });

  it("[CORE-LIST-007] reach from the first instant there is to the last", async () => {
    await make("ages", 2);
    const since = async (statusTimestampAfter: string) =>
      (await scene.client().list({ contextId: "ages", statusTimestampAfter })).totalSize;
    // The year 0 can only be written, not counted: `Timestamp` begins with the year 1.
    const first = binding.can.anyJson ? "0000-01-01T00:00:00Z" : "0001-01-01T00:00:00Z";
    for (const long of [first, "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z"]) {
      expect(await since(long), long).toBe(2);
    }
    expect(await since("9999-12-31T23:59:59.999999999Z")).toBe(0);
  });

  it("[CORE-LIST-007] include tasks exactly at the instant asked for", async () => {
    const [task] = await make("instant", 1);
    const at = task?.status.timestamp ?? "";
    const found = async (statusTimestampAfter: string) =>
      (await scene.client().list({ contextId: "instant", statusTimestampAfter })).totalSize;
    expect(await found(at)).toBe(1);
    expect(await found(new Date(Date.parse(at) - 1).toISOString())).toBe(1);
    expect(await found(new Date(Date.parse(at) + 1).toISOString())).toBe(0);
    expect(await found("1999-12-31T23:59:59Z")).toBe(1);
  });

  it("[CORE-LIST-008] can be narrowed by state, and by all filters together", async () => {
    const [failed] = await make("states", 1, "fail no");
    const [asking] = await make("states", 1, "input more?");
    await make("states", 2);
    const find = async (params: Params) => ids((await scene.client().list({ contextId: "states", ...params })).tasks);
    expect(await find({ status: "TASK_STATE_FAILED" })).toEqual([failed?.id]);
    expect(await find({ status: "TASK_STATE_INPUT_REQUIRED" })).toEqual([asking?.id]);
    expect(await find({ status: "TASK_STATE_COMPLETED" })).toHaveLength(2);
    expect(await find({ status: "TASK_STATE_UNSPECIFIED" })).toHaveLength(4);
    const after = failed?.status.timestamp ?? "";
    expect(await find({ status: "TASK_STATE_FAILED", statusTimestampAfter: after })).toEqual([failed?.id]);
    await scene.client().cancel(asking?.id ?? "");
    expect(await find({ status: "TASK_STATE_INPUT_REQUIRED" })).toEqual([]);
    expect(await find({ status: "TASK_STATE_CANCELED" })).toEqual([asking?.id]);
  });
});
