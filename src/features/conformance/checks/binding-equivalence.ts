import { type Fields, fieldsOf, listOf } from "../../../core/model/json.ts";
import { type Check, check, ensure, fail, notShown } from "../check.ts";
import { type CheckContext, newId, type SeenTask, showError } from "../check-context.ts";
import { sameJson, show, textOf } from "../json.ts";
import { isError } from "../peers/errors.ts";
import { OPERATION_NAMES, type OperationName } from "../peers/peer.ts";

const nameOf = ({ peer }: CheckContext): string => peer.target.binding;

function requireSeveralBindings(contexts: readonly CheckContext[]): readonly CheckContext[] {
  return contexts.length < 2 ? notShown("the card declares one binding only") : contexts;
}

/** The content of a task, without members that bindings may omit. */
function toComparable(task: SeenTask): Fields {
  const { artifacts, history, status } = task.value;
  const { message, state, timestamp } = fieldsOf(status);
  return {
    id: task.id,
    contextId: task.contextId,
    state,
    time: typeof timestamp === "string" ? Date.parse(timestamp) : undefined,
    message: textsOf(fieldsOf(message).parts),
    artifacts: listOf(artifacts)
      .map(fieldsOf)
      .map(({ artifactId, parts }) => [artifactId, textsOf(parts)]),
    history: listOf(history)
      .map(fieldsOf)
      .map(({ messageId, parts, role }) => [messageId, role, textsOf(parts)]),
  };
}

/** How much history is included by default is up to the server, and may differ by binding. */
function sameTask(one: Fields, other: Fields): boolean {
  const both = listOf(one.history).length > 0 && listOf(other.history).length > 0;
  return both ? sameJson(one, other) : sameJson({ ...one, history: [] }, { ...other, history: [] });
}

function textsOf(parts: unknown): readonly unknown[] {
  return listOf(parts).map((part) => textOf(fieldsOf(part).text) ?? Object.keys(fieldsOf(part)).sort());
}

/** Requests without side effects that show whether an operation exists. */
function probeParams(operation: OperationName): Fields {
  const unknown = "conformance-unknown-task";
  if (operation === "ListTasks") return { pageSize: 1 };
  if (operation === "GetExtendedAgentCard") return {};
  if (operation.includes("PushNotification")) {
    return { taskId: unknown, id: "conformance", url: "https://webhook.conformance.example/notify" };
  }
  return operation.startsWith("Send") ? {} : { id: unknown };
}

async function supportsOperation(context: CheckContext, operation: OperationName): Promise<boolean> {
  const { binding, target } = context.peer;
  const params = probeParams(operation);
  if (operation !== "SendStreamingMessage" && operation !== "SubscribeToTask") {
    const answer = await context.withoutValidation(() => context.call(operation, params));
    return answer.ok || !isMissing(answer.error);
  }
  const opened = await context.open(operation, params);
  if (opened.ok !== "stream") return !isMissing(opened.error);
  opened.frames.close();
  return true;

  function isMissing(error: Parameters<typeof isError>[0]): boolean {
    // "Task not found" has the same status as "route not found".
    if (isError(error, "TASK_NOT_FOUND", binding, target.version) && error.name !== undefined) return false;
    if (binding === "HTTP+JSON" && error.code === 404)
      return error.name === undefined && !/task|config/i.test(error.message);
    // UNIMPLEMENTED is also the status of an operation that the card does not offer.
    if (binding === "GRPC" && (error.name !== undefined || !isOffered(context, operation))) return false;
    return isError(error, "METHOD_NOT_FOUND", binding, target.version);
  }
}

function isOffered({ declared }: CheckContext, operation: OperationName): boolean {
  if (operation === "GetExtendedAgentCard") return declared.extendedCard;
  if (operation.includes("PushNotification")) return declared.push;
  return declared.streaming || (operation !== "SendStreamingMessage" && operation !== "SubscribeToTask");
}

export const EQUIVALENCE_CHECKS: readonly Check<readonly CheckContext[]>[] = [
  check("same-operations", "BIND-EQUIV-001", async (contexts) => {
    for (const context of contexts) {
      for (const operation of OPERATION_NAMES) {
        if (!context.peer.supports(operation)) continue;
        ensure(await supportsOperation(context, operation), `${operation} does not exist in ${nameOf(context)}`);
      }
    }
  }),
  check("same-tasks", "BIND-EQUIV-002", async (contexts) => {
    const [first, ...others] = requireSeveralBindings(contexts);
    if (first === undefined) return;
    const made = await first.task(first.message("tck-artifact-text"));
    const expected = toComparable(await first.get(made.id));
    for (const other of others) {
      const answer = await other.call("GetTask", { id: made.id });
      if (!answer.ok)
        fail(`a task made over ${nameOf(first)} is refused over ${nameOf(other)}: ${showError(answer.error)}`);
      const actual = toComparable(other.recordTask(fieldsOf(answer.result)));
      ensure(
        sameTask(actual, expected),
        `a task is ${show(expected)} over ${nameOf(first)} and ${show(actual)} over ${nameOf(other)}`,
      );
    }
  }),
  check("same-refusals", "BIND-EQUIV-003", async (contexts) => {
    const [first] = requireSeveralBindings(contexts);
    if (first === undefined) return;
    const ended = await first.completedTask();
    for (const context of contexts) {
      await context.expectError("TASK_NOT_FOUND", "GetTask", { id: newId() });
      await context.expectError("TASK_NOT_CANCELABLE", "CancelTask", { id: ended.id });
      await context.expectError("INVALID_PARAMS", "SendMessage", {});
    }
  }),
];
