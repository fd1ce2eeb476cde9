import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { type Check, check, ensure, fail, notShown } from "../check.ts";
import {
  type CheckContext,
  eventOf,
  isInterruptedState,
  isTerminalState,
  newId,
  stateOfEvent,
} from "../check-context.ts";
import { sameJson, show, textOf } from "../json.ts";

async function streamEvents(context: CheckContext, message: Fields): Promise<readonly Fields[]> {
  context.requireStreaming();
  const events = await context.events(await context.stream("SendStreamingMessage", { message }));
  ensure(events.length > 0, "the stream has no events");
  return events;
}

function taskIdOf(events: readonly Fields[]): string | undefined {
  return textOf(fieldsOf(events[0]?.task).id) ?? textOf(fieldsOf(events[0]?.statusUpdate).taskId);
}

/** Content of each artifact by id, with adjacent text parts joined. */
function textsOf(artifacts: readonly Fields[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const { artifactId, parts } of artifacts) {
    texts[String(artifactId)] = listOf(parts)
      .map((part) => JSON.stringify(fieldsOf(part).text ?? part))
      .join("")
      .replaceAll('""', "");
  }
  return texts;
}

function artifactsOf(events: readonly Fields[]): readonly Fields[] {
  const found = new Map<string, Fields>();
  for (const { artifactUpdate, task } of events) {
    for (const artifact of listOf(fieldsOf(task).artifacts).map(fieldsOf))
      found.set(String(artifact.artifactId), artifact);
    if (!isObject(artifactUpdate)) continue;
    const artifact = fieldsOf(artifactUpdate.artifact);
    const known = found.get(String(artifact.artifactId));
    const parts = [...(artifactUpdate.append === true ? listOf(known?.parts) : []), ...listOf(artifact.parts)];
    found.set(String(artifact.artifactId), { ...artifact, parts });
  }
  return [...found.values()];
}

export const STREAM_CHECKS: readonly Check<CheckContext>[] = [
  check("streaming-not-offered", "CORE-CAP-002", async (context) => {
    if (context.declared.streaming) notShown("the card offers streaming");
    const message = context.message("tck-stream-001");
    await context.expectStreamError("UNSUPPORTED_OPERATION", "SendStreamingMessage", { message });
    const { id } = await context.completedTask();
    await context.expectStreamError("UNSUPPORTED_OPERATION", "SubscribeToTask", { id });
  }),
  check("stream-opens", "CORE-STREAM-001", async (context) => {
    await streamEvents(context, context.message("tck-stream-001"));
  }),
  check("stream-of-message", "CORE-STREAM-002", async (context) => {
    const events = await streamEvents(context, context.message("tck-message-response"));
    if (!("message" in (events[0] ?? {}))) notShown("the agent answers with a task");
    ensure(events.length === 1, `${events.length} events came, where one message is all`);
  }),
  check("stream-of-task", "CORE-STREAM-003", async (context) => {
    const events = await streamEvents(context, context.message("tck-stream-001"));
    if ("message" in (events[0] ?? {})) notShown("the agent answers without a task");
    ensure(isObject(events[0]?.task), `the stream begins with ${show(events[0])}, not with the task`);
    const states = events.map(stateOfEvent);
    const end = states.findIndex(isTerminalState);
    if (end === -1) {
      ensure(
        isInterruptedState(states.findLast((state) => state !== undefined)),
        "the stream ends before its task does",
      );
      return;
    }
    const again = events.slice(1, -1).find((event) => isObject(event.task));
    ensure(again === undefined, `within the stream came another task: ${show(again)}`);
    // A final snapshot of the task is allowed before the stream closes.
    const late = events.slice(end + 1).filter((event) => !isObject(event.task));
    ensure(late.length === 0, `after the end of the task came ${show(late[0])}`);
  }),
  check("stream-adds-up", "CORE-STREAM-004", async (context) => {
    const events = await streamEvents(context, context.message("tck-stream-001"));
    const id = taskIdOf(events) ?? notShown("the agent answers without a task");
    const task = await context.get(id);
    const last = events.map(stateOfEvent).findLast((state) => state !== undefined);
    ensure(last === task.state, `the stream ends with ${last}, and the task is ${task.state}`);
    const streamed = textsOf(artifactsOf(events));
    const stored = textsOf(listOf(task.value.artifacts).map(fieldsOf));
    ensure(
      sameJson(streamed, stored),
      `the stream's artifacts are ${show(streamed)}, those of the task ${show(stored)}`,
    );
  }),
  check("subscribe-begins-with-task", "STREAM-SUB-001", async (context) => {
    context.requireStreaming();
    const open = await context.openTask();
    const frames = await context.subscribe(open.id);
    const first = await frames.next();
    frames.close();
    const task = fieldsOf(first === undefined ? undefined : eventOf(first).task);
    ensure(task.id === open.id, `the subscription begins with ${show(first?.wire)}, not with the task`);
  }),
  check("subscribe-ends-with-task", "STREAM-SUB-002", async (context) => {
    context.requireStreaming();
    const open = await context.openTask();
    const frames = await context.subscribe(open.id);
    if (context.version === "1.0") await frames.next();
    await context.cancel(open.id);
    const states = (await context.events(frames)).map(stateOfEvent);
    ensure(states.some(isTerminalState), `the subscription ended without the end of the task: ${show(states)}`);
  }),
  check("subscribe-to-ended-task", "STREAM-SUB-003", async (context) => {
    context.requireStreaming();
    const { id } = await context.completedTask();
    await context.expectStreamError("UNSUPPORTED_OPERATION", "SubscribeToTask", { id });
  }),
  check("subscribe-to-unknown-task", "STREAM-SUB-004", async (context) => {
    context.requireStreaming();
    await context.expectStreamError("TASK_NOT_FOUND", "SubscribeToTask", { id: newId() });
  }),
  check("streams-agree", "STREAM-ORDER-003", async (context) => {
    context.requireStreaming();
    const { id } = await context.runningTask(["test-resubscribe-message-id", "tck-long-running", "tck-cancel"]);
    const streams = [await openSubscription(context, id), await openSubscription(context, id)];
    const [one, other] = await Promise.all(streams.map((frames) => eventsUntilEnd(context, frames, id)));
    ensure(sameJson(one, other), `two streams of one task differ: ${show(one)} and ${show(other)}`);
  }),
  check("streams-are-apart", "STREAM-ORDER-004", async (context) => {
    context.requireStreaming();
    const { id } = await context.openTask();
    const left = await openSubscription(context, id);
    const remaining = await openSubscription(context, id);
    left.close();
    await context.get(id);
    await context.cancel(id);
    const states = (await context.events(remaining)).map(stateOfEvent);
    ensure(states.some(isTerminalState), "a stream ended when another one was closed");
  }),
  check("client-leaves", "STREAM-LEAVE-001", async (context) => {
    context.requireStreaming();
    const message = context.message("tck-long-running");
    const frames = await context.stream("SendStreamingMessage", { message });
    const first = await frames.next();
    const task = first === undefined ? undefined : eventOf(first).task;
    frames.close();
    if (!isObject(task)) notShown("the agent answers without a task");
    const seen = context.recordTask(task);
    if (isTerminalState(seen.state)) notShown("the agent ends its tasks at once");
    const ended = await context.waitUntilEnded(seen.id);
    ensure(ended.state === "TASK_STATE_COMPLETED", `the task became ${ended.state} when its client left`);
  }),
  check("streams-stay-for-authentication", "AUTH-INTASK-005", async (context) => {
    context.requireStreaming();
    const frames = await context.stream("SendStreamingMessage", { message: context.message("tck-auth-required") });
    try {
      for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
        const event = eventOf(frame);
        if (isObject(event.task)) context.recordTask(event.task);
        const state = stateOfEvent(event);
        if (isTerminalState(state)) notShown("the agent never requires authentication");
        if (state !== "TASK_STATE_AUTH_REQUIRED") continue;
        ensure(await frames.isQuiet(300), "the stream was closed when authentication was required");
        return;
      }
      fail("the stream ended before its task did");
    } finally {
      frames.close();
    }
  }),
];

async function openSubscription(context: CheckContext, id: string) {
  const frames = await context.subscribe(id);
  await frames.next();
  return frames;
}

/** The events after the first snapshot until the task ends; the task is cancelled if it does not end by itself. */
async function eventsUntilEnd(context: CheckContext, frames: Awaited<ReturnType<typeof openSubscription>>, id: string) {
  const timer = setTimeout(() => {
    context.call("CancelTask", { id }).catch(() => undefined);
  }, context.options.patienceMs / 2);
  try {
    return await context.events(frames);
  } finally {
    clearTimeout(timer);
  }
}
