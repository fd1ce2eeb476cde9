import { type Fields, fieldsOf, listOf } from "../../../core/model/json.ts";
import { type Check, check, ensure, fail, notShown } from "../check.ts";
import type { CheckContext, SeenTask } from "../check-context.ts";
import { show, textOf } from "../json.ts";

/** Tasks in a context that no other client adds to. */
async function createThreeTasks(context: CheckContext): Promise<readonly SeenTask[]> {
  const first = await context.newCompletedTask();
  const { contextId } = first;
  if (contextId === "") notShown("tasks have no context");
  const second = await context.newCompletedTask({ contextId });
  return [first, second, await context.newCompletedTask({ contextId })];
}

async function listPage(context: CheckContext, params: Fields): Promise<Fields> {
  return fieldsOf(await context.result("ListTasks", params));
}

const tasksOf = (value: Fields): readonly Fields[] => listOf(value.tasks).map(fieldsOf);
const idsOf = (value: Fields): readonly string[] => tasksOf(value).map(({ id }) => textOf(id) ?? "");
const timeOf = (task: Fields): string => textOf(fieldsOf(task.status).timestamp) ?? "";

const INVALID_REQUESTS: readonly (readonly [string, Fields])[] = [
  ["pageSize 101", { pageSize: 101 }],
  ["a negative historyLength", { historyLength: -1 }],
  ["a page token that was never given", { pageToken: "conformance-no-such-token" }],
];

/** Values that a protobuf field cannot represent, or that generated clients send for none. */
const INVALID_JSON_REQUESTS: readonly (readonly [string, Fields])[] = [
  ["pageSize 0", { pageSize: 0 }],
  ["an unknown state", { status: "TASK_STATE_CONFORMANCE" }],
  ["a pageSize that is text", { pageSize: "many" }],
];

export const LIST_CHECKS: readonly Check<CheckContext>[] = [
  check("list-pages", "CORE-LIST-002", async (context) => {
    const made = (await createThreeTasks(context)).map(({ id }) => id);
    const contextId = (await context.get(made[0] ?? "")).contextId;
    const walked: string[] = [];
    let pageToken: string | undefined;
    for (let pages = 0; pages < 5; pages++) {
      const more = pageToken === undefined ? {} : { pageToken };
      const part = await listPage(context, { contextId, pageSize: 1, ...more });
      ensure(tasksOf(part).length <= 1, `pageSize 1 gave ${tasksOf(part).length} tasks`);
      walked.push(...idsOf(part));
      pageToken = textOf(part.nextPageToken);
      if (pageToken === undefined || pageToken === "") break;
    }
    ensure(
      walked.length === made.length && made.every((id) => walked.includes(id)),
      `a walk over the pages gave ${show(walked)}, not each of ${show(made)} once`,
    );
  }),
  check("list-order", "CORE-LIST-003", async (context) => {
    const made = await createThreeTasks(context);
    const listed = await listPage(context, { contextId: made[0]?.contextId });
    const times = tasksOf(listed).map(timeOf);
    if (times.some((time) => time === "")) notShown("tasks have no time");
    for (const [at, time] of times.entries()) {
      const next = times[at + 1];
      if (next !== undefined && Date.parse(next) > Date.parse(time))
        fail(`${next} is listed after ${time}; the newest come first`);
    }
    ensure(tasksOf(listed).length === made.length, `${tasksOf(listed).length} of ${made.length} tasks were listed`);
  }),
  check("list-members", "CORE-LIST-004", async (context) => {
    const { contextId } = await context.completedTask();
    const { wire } = await listWire(context, { contextId });
    // Protobuf omits empty members; there they count as sent.
    const written = context.peer.binding !== "GRPC";
    const { nextPageToken, pageSize, tasks, totalSize } = wire;
    ensure(Array.isArray(tasks), `tasks is ${show(tasks)}`);
    ensure(written ? nextPageToken === "" : !nextPageToken, `the last page's nextPageToken is ${show(nextPageToken)}`);
    ensure(typeof totalSize === "number" && totalSize >= 1, `totalSize is ${show(totalSize)}`);
    ensure(typeof pageSize === "number" && pageSize >= 1, `pageSize is ${show(pageSize)}`);
  }),
  check("list-artifacts", "CORE-LIST-005", async (context) => {
    const made = await context.task(context.message("tck-artifact-text"));
    const had = listOf((await context.get(made.id)).value.artifacts).length;
    const { wire } = await listWire(context, { contextId: made.contextId });
    const shown = tasksOf(wire).filter((task) => "artifacts" in task);
    ensure(shown.length === 0, `artifacts are listed that were not asked for: ${show(shown[0]?.artifacts)}`);
    if (had === 0) notShown("the agent makes no artifacts");
    const full = await listPage(context, { contextId: made.contextId, includeArtifacts: true });
    const listedTask = tasksOf(full).find(({ id }) => id === made.id);
    ensure(listOf(listedTask?.artifacts).length === had, "artifacts that were asked for are not listed");
  }),
  check("list-nonsense", "CORE-LIST-006", async (context) => {
    const cases = context.peer.binding === "GRPC" ? INVALID_REQUESTS : [...INVALID_REQUESTS, ...INVALID_JSON_REQUESTS];
    for (const [what, params] of cases) {
      const answer = await context.withoutValidation(() => context.call("ListTasks", params));
      if (answer.ok) fail(`a list with ${what} was given: ${show(answer.wire)}`);
      context.checkError("INVALID_PARAMS", answer.error, `ListTasks with ${what}`);
    }
  }),
  check("list-since", "CORE-LIST-007", async (context) => {
    const made = await context.newCompletedTask();
    const time = timeOf((await context.get(made.id)).value);
    if (time === "") notShown("tasks have no time");
    const { contextId } = made;
    const at = await listPage(context, { contextId, statusTimestampAfter: time });
    ensure(idsOf(at).includes(made.id), `statusTimestampAfter ${time} leaves out a task of that very time`);
    const later = new Date(Date.parse(time) + 1_000).toISOString();
    const after = await listPage(context, { contextId, statusTimestampAfter: later });
    ensure(!idsOf(after).includes(made.id), `statusTimestampAfter ${later} lists a task of ${time}`);
  }),
  check("list-filters", "CORE-LIST-008", async (context) => {
    const one = await context.newCompletedTask();
    const other = await context.newCompletedTask();
    if (one.contextId === other.contextId) notShown("all tasks have the same context");
    const inContext = idsOf(await listPage(context, { contextId: one.contextId }));
    ensure(inContext.includes(one.id) && !inContext.includes(other.id), `a list of one context has ${show(inContext)}`);
    const { contextId } = one;
    const completed = idsOf(await listPage(context, { contextId, status: "TASK_STATE_COMPLETED" }));
    ensure(completed.includes(one.id), "a list of completed tasks leaves one out");
    const working = idsOf(await listPage(context, { contextId, status: "TASK_STATE_WORKING" }));
    ensure(!working.includes(one.id), "a list of tasks at work has one that has completed");
  }),
];

/** A page as encoded on the wire, for checks on the presence of members. */
async function listWire(context: CheckContext, params: Fields): Promise<{ readonly wire: Fields }> {
  const answer = await context.call("ListTasks", params);
  return answer.ok ? { wire: fieldsOf(answer.wire) } : fail(`ListTasks was refused: ${answer.error.message}`);
}
