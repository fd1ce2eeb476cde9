import { type Check, check, ensure, fail, notShown } from "../check.ts";
import { type CheckContext, historyOf, isTerminalState, newId, type SeenTask, showError } from "../check-context.ts";
import { sameJson, show } from "../json.ts";

/** A task with more than one message in its history. */
async function taskWithHistory(context: CheckContext): Promise<SeenTask> {
  const paused = await context.pausedTask();
  await context.send(context.message("tck-input-required", { taskId: paused.id }));
  const task = await context.get(paused.id);
  return historyOf(task).length < 2 ? notShown("the server does not keep a history") : task;
}

const idsOf = (task: SeenTask): readonly unknown[] => historyOf(task).map(({ messageId }) => messageId);

export const TASK_CHECKS: readonly Check<CheckContext>[] = [
  check("get-task", "CORE-GET-001", async (context) => {
    const made = await context.completedTask();
    const read = await context.get(made.id);
    ensure(read.id === made.id, `another task was returned: ${show(read.id)}`);
    ensure(read.state === made.state, `the task is ${read.state}, and was ${made.state}`);
    ensure(
      read.contextId === made.contextId,
      `the context is ${show(read.contextId)}, and was ${show(made.contextId)}`,
    );
  }),
  check("get-unknown-task", "CORE-GET-002", async (context) => {
    await context.expectError("TASK_NOT_FOUND", "GetTask", { id: newId() });
  }),
  check("history-bounded", "CORE-HIST-002", async (context) => {
    const task = await taskWithHistory(context);
    for (const historyLength of [1, 2]) {
      const bounded = await context.get(task.id, { historyLength });
      const ids = idsOf(bounded);
      ensure(ids.length <= historyLength, `historyLength ${historyLength} gave ${ids.length} messages`);
      const newest = idsOf(task).slice(-ids.length);
      ensure(
        ids.length === 0 || sameJson(ids, newest),
        `historyLength ${historyLength} gave ${show(ids)}, not the newest, ${show(newest)}`,
      );
    }
  }),
  check("history-none", "CORE-HIST-001", async (context) => {
    const { id } = await context.completedTask();
    const { value } = await context.get(id, { historyLength: 0 });
    ensure(value.history === undefined, `historyLength 0 gave ${show(value.history)}`);
  }),
  check("history-none-in-answer", "CORE-HIST-003", async (context) => {
    const { value } = await context.task(context.message("tck-complete-task"), { historyLength: 0 });
    ensure(value.history === undefined, `historyLength 0 gave ${show(value.history)}`);
  }),
  check("history-in-order", "CORE-HIST-005", async (context) => {
    const first = context.message("tck-input-required");
    const paused = await context.task(first);
    if (paused.state !== "TASK_STATE_INPUT_REQUIRED") notShown("the agent never requires input");
    const second = context.message("tck-input-required", { taskId: paused.id });
    await context.send(second);
    const ids = idsOf(await context.get(paused.id));
    const places = [first.messageId, second.messageId].map((id) => ids.indexOf(id));
    if (places.includes(-1)) notShown("the server does not keep a history");
    ensure((places[0] ?? 0) < (places[1] ?? 0), `the history is ${show(ids)}`);
  }),
  check("cancel-task", "CORE-CANCEL-001", async (context) => {
    const open = await context.openTask();
    const task = await context.cancel(open.id);
    ensure(task.id === open.id, `another task was returned: ${show(task.id)}`);
    if (isTerminalState(task.state)) return;
    ensure((await context.waitUntilEnded(open.id)).state === "TASK_STATE_CANCELED", "the task was not cancelled");
  }),
  check("cancel-ended-task", "CORE-CANCEL-002", async (context) => {
    const { id } = await context.completedTask();
    await context.expectError("TASK_NOT_CANCELABLE", "CancelTask", { id });
  }),
  check("cancel-unknown-task", "CORE-CANCEL-003", async (context) => {
    await context.expectError("TASK_NOT_FOUND", "CancelTask", { id: newId() });
  }),
  check("cancel-twice", "CORE-CANCEL-004", async (context) => {
    const open = await context.openTask();
    await context.cancel(open.id);
    const once = await context.waitUntilEnded(open.id);
    const again = await context.call("CancelTask", { id: open.id });
    // The specification calls cancelling idempotent and also lists cancelled tasks among those that cannot be
    // cancelled.
    if (!again.ok && again.error.name !== undefined && again.error.name !== "TASK_NOT_CANCELABLE")
      fail(`a second cancellation was refused as ${showError(again.error)}`);
    const twice = await context.get(open.id);
    ensure(sameJson(once.value.status, twice.value.status), `the status became ${show(twice.value.status)}`);
  }),
  check("ended-task-stays", "CORE-TASK-001", async (context) => {
    const made = await context.newCompletedTask();
    const before = await context.get(made.id);
    await context.call("CancelTask", { id: made.id });
    const message = context.message("tck-input-required", { taskId: made.id, contextId: made.contextId });
    await context.call("SendMessage", { message });
    const after = await context.get(made.id);
    ensure(
      sameJson(before.value.status, after.value.status),
      `the task ended as ${show(before.value.status)} and became ${show(after.value.status)}`,
    );
  }),
];
