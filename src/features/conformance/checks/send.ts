import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { type Check, check, checkOver, ensure, fail, notShown } from "../check.ts";
import { type CheckContext, isInterruptedState, isTerminalState, newId, showError } from "../check-context.ts";
import { sameJson, show } from "../json.ts";

const omit = (message: Fields, name: string): Fields => {
  const { [name]: _left, ...rest } = message;
  return rest;
};

/** Invalid messages, each with its defect. In 0.3 servers may assign an id to a message without one. */
function incompleteRequests(context: CheckContext): (readonly [string, Fields])[] {
  const message = context.message("tck-complete-task");
  const cases: (readonly [string, Fields])[] = [
    ["no message", {}],
    ["no role", { message: omit(message, "role") }],
    ["no parts", { message: omit(message, "parts") }],
  ];
  return context.version === "1.0" ? [...cases, ["no messageId", { message: omit(message, "messageId") }]] : cases;
}

export const SEND_CHECKS: readonly Check<CheckContext>[] = [
  check("send-answer", "CORE-SEND-001", async (context) => {
    const answer = await context.call("SendMessage", { message: context.message("tck-complete-task") });
    if (!answer.ok) fail(`a simple message was refused: ${showError(answer.error)}`);
    const members = Object.keys(fieldsOf(answer.result)).filter((name) => name === "task" || name === "message");
    ensure(members.length === 1, `the answer is not either a task or a message: ${show(answer.wire)}`);
    context.readOutcome(answer.result);
  }),
  check("send-waits", "CORE-EXECUTION-MODE-001", async (context) => {
    const { state } = await context.task(context.message("tck-delayed-complete"));
    ensure(
      isTerminalState(state) || isInterruptedState(state),
      `a blocking send was answered while the task is ${state}`,
    );
  }),
  check("send-returns-immediately", "CORE-EXECUTION-MODE-002", async (context) => {
    const blocking = await measure(() => context.task(context.message("tck-delayed-complete")));
    const returned = await measure(() =>
      context.task(context.message("tck-delayed-complete"), { returnImmediately: true }),
    );
    const { id, state } = returned.value;
    if (!isTerminalState(state)) {
      await context.waitUntilEnded(id);
      return;
    }
    // An agent that cannot be made to delay shows nothing; one as slow as the blocking send ignored
    // returnImmediately.
    let tookItsTime = false;
    // On a busy machine a quick send may be slow by chance, but not every time.
    for (let attempt = 0; blocking.ms >= 200 && !tookItsTime && attempt < 5; attempt++) {
      const quick = await measure(() => context.task(context.message("tck-complete-task")));
      tookItsTime = blocking.ms >= 5 * quick.ms;
    }
    ensure(
      !tookItsTime || returned.ms < blocking.ms / 2,
      `the answer came after ${Math.round(returned.ms)} ms with the task ${state}, as without returnImmediately (${blocking.value.state})`,
    );
    notShown("the agent ends its tasks at once");
  }),
  check("send-answer-is-complete", "CORE-EXECUTION-MODE-003", async (context) => {
    const sent = await context.task(context.message("tck-artifact-text"));
    const read = await context.get(sent.id);
    ensure(
      sameJson(sent.value.status, read.value.status),
      `the status of the answer is ${show(sent.value.status)}, that of the task ${show(read.value.status)}`,
    );
    ensure(
      sameJson(listOf(sent.value.artifacts), listOf(read.value.artifacts)),
      `the artifacts of the answer are ${show(sent.value.artifacts)}, those of the task ${show(read.value.artifacts)}`,
    );
  }),
  check("send-returns-when-interrupted", "CORE-EXECUTION-MODE-004", async (context) => {
    const { state } = await context.task(context.message("tck-input-required"));
    if (!isInterruptedState(state)) notShown("the agent never requires input");
  }),
  check("send-incomplete", "CORE-ERR-002", async (context) => {
    for (const [what, params] of incompleteRequests(context)) {
      const answer = await context.withoutValidation(() => context.call("SendMessage", params));
      if (answer.ok) fail(`a request with ${what} was taken: ${show(answer.wire)}`);
      context.checkError("INVALID_PARAMS", answer.error, `SendMessage with ${what}`);
    }
  }),
  check("send-without-parts", "DM-PARTS-001", async (context) => {
    const message = context.message("tck-complete-task", { parts: [] });
    await context.withoutValidation(() => context.expectError("INVALID_PARAMS", "SendMessage", { message }));
  }),
  checkOver(["JSONRPC", "HTTP+JSON"], "send-unknown-members", "DM-SERIAL-005", async (context) => {
    const message = context.message("tck-complete-task", { conformanceUnknown: { nested: [1] } });
    const answer = await context.call("SendMessage", { message, conformanceUnknown: true });
    if (!answer.ok) fail(`a message with unknown members was refused: ${showError(answer.error)}`);
    context.readOutcome(answer.result);
  }),
  check("send-to-ended-task", "CORE-SEND-002", async (context) => {
    const { contextId, id } = await context.completedTask();
    const message = context.message("conformance", { taskId: id, contextId });
    if (context.version === "1.0") {
      await context.expectError("UNSUPPORTED_OPERATION", "SendMessage", { message });
      return;
    }
    // 0.3 does not specify the error.
    const answer = await context.call("SendMessage", { message });
    if (answer.ok) fail(`a message to a task that has ended was taken: ${show(answer.wire)}`);
  }),
  check("send-foreign-content", "CORE-SEND-003", async (context) => {
    const type = "application/x-conformance-unknown";
    const { inputModes } = context.declared;
    if (inputModes.some((mode) => mode === "*/*" || mode === "*" || mode.startsWith("application/*")))
      notShown("the agent takes any content");
    const parts = [{ raw: "aGVsbG8=", mediaType: type, filename: "conformance.bin" }];
    const message = context.message("tck-complete-task", { parts });
    await context.expectError("CONTENT_TYPE_NOT_SUPPORTED", "SendMessage", { message });
  }),
  check("send-to-unknown-task", "CORE-MULTI-004", async (context) => {
    const taskId = newId();
    await context.expectError("TASK_NOT_FOUND", "SendMessage", {
      message: context.message("tck-complete-task", { taskId }),
    });
    await context.expectError("TASK_NOT_FOUND", "GetTask", { id: taskId });
  }),
  check("task-ids-are-new", "CORE-MULTI-003", async (context) => {
    const message = context.message("tck-complete-task");
    const ids = [await context.task(message), await context.task(context.message("tck-complete-task"))].map(
      ({ id }) => id,
    );
    ensure(ids[0] !== ids[1], `two messages became the same task ${show(ids[0])}`);
    ensure(
      ids.every((id) => id !== ""),
      "a task has no id",
    );
  }),
  check("context-generated", "CORE-MULTI-001a", async (context) => {
    const sent = await context.send(context.message("tck-complete-task"));
    const contextId = "task" in sent ? sent.task.contextId : sent.message.contextId;
    ensure(typeof contextId === "string" && contextId !== "", "the answer names no context");
  }),
  check("context-of-client", "CORE-MULTI-002a", async (context) => {
    const contextId = newId();
    const answer = await context.call("SendMessage", {
      message: context.message("tck-complete-task", { contextId }),
    });
    if (!answer.ok) return;
    const sent = context.readOutcome(answer.result);
    const given = "task" in sent ? sent.task.contextId : sent.message.contextId;
    ensure(given === contextId, `the context ${show(contextId)} became ${show(given)}`);
  }),
  check("context-of-task", "CORE-MULTI-005", async (context) => {
    const paused = await context.pausedTask();
    const sent = await context.send(context.message("tck-input-required", { taskId: paused.id }));
    if (!("task" in sent)) fail("a message to a task was answered without it");
    ensure(sent.task.id === paused.id, `a message to ${show(paused.id)} was answered with ${show(sent.task.id)}`);
    ensure(
      sent.task.contextId === paused.contextId,
      `the context ${show(paused.contextId)} became ${show(sent.task.contextId)}`,
    );
  }),
  check("context-contradicts-task", "CORE-MULTI-006", async (context) => {
    const { id } = await context.pausedTask();
    const message = context.message("tck-input-required", { taskId: id, contextId: newId() });
    const answer = await context.call("SendMessage", { message });
    if (answer.ok) fail(`a message with a context that is not the task's was taken: ${show(answer.wire)}`);
  }),
  check("demand-for-authentication", "AUTH-INTASK-001", async (context) => {
    const { state, value } = await context.task(context.message("tck-auth-required"));
    if (state !== "TASK_STATE_AUTH_REQUIRED") notShown("the agent never requires authentication");
    const { message } = fieldsOf(value.status);
    ensure(isObject(message) && listOf(message.parts).length > 0, "the status has no message that explains it");
  }),
];

async function measure<Value>(run: () => Promise<Value>): Promise<{ readonly value: Value; readonly ms: number }> {
  const begun = performance.now();
  const value = await run();
  return { value, ms: performance.now() - begun };
}
