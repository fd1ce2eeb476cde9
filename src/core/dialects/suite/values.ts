/** Model values that a dialect declares to support. */

import fc from "fast-check";
import type { StreamEvent } from "../../model/event.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { isDataPart, type Message, type Part } from "../../model/message.ts";
import type { FrameStream, Operation, SendOutcome, StreamFrame } from "../../model/operation.ts";
import { type Artifact, isInterrupted, isTerminal, TASK_STATES, type Task, type TaskState } from "../../model/task.ts";
import type { Abilities, AgentService } from "../contract.ts";

/**
 * For dialects that support only streams: treats stream requests as sends, whose outcomes may also be streams. No tasks
 * are waiting or running.
 */
export function streamingOnly(service: AgentService): AgentService {
  const call = { caller: { owner: "", authenticated: false }, tenant: "", extensions: [], dialect: "" };
  const answer = async (operation: Operation): Promise<unknown> => {
    if (operation.kind === "list") return { tasks: [], nextPageToken: "", pageSize: 1, totalSize: 0 };
    if (operation.kind !== "stream") return service.dispatch(operation, call);
    const outcome: SendOutcome | FrameStream = await service.dispatch({ ...operation, kind: "send" }, call);
    return streamToEnd(outcome);
  };
  return { ...service, dispatch: (operation) => answer(operation) as Promise<never> };
}

/** A stream that ends before its task is an error if the task cannot be queried. */
async function* streamToEnd(
  outcome: SendOutcome | FrameStream,
): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  if (Symbol.asyncIterator in outcome) yield* outcome;
  else yield [frameOf(outcome, 1)];
  yield [frameOf({ statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } }, 2)];
}

/** The result of a stream: its artifacts and its last state. */
export function outcomeOfStream(frames: readonly StreamFrame[]): unknown {
  const artifacts = new Map<string, Part[]>();
  let state: TaskState | undefined;
  const put = ({ artifactId, parts }: Artifact, append: boolean) => {
    artifacts.set(artifactId, [...(append ? (artifacts.get(artifactId) ?? []) : []), ...parts.map(withoutDataExtras)]);
  };
  for (const { event } of frames) {
    if ("artifactUpdate" in event) put(event.artifactUpdate.artifact, event.artifactUpdate.append === true);
    if ("task" in event) for (const artifact of event.task.artifacts ?? []) put(artifact, false);
    if ("task" in event) state = event.task.status.state;
    if ("statusUpdate" in event) state = event.statusUpdate.status.state;
    if (state !== undefined && (isTerminal(state) || isInterrupted(state))) break;
  }
  return [[...artifacts], state];
}

function withoutDataExtras(part: Part): Part {
  return isDataPart(part) ? { data: part.data } : part;
}

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,11}$/);
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
/** Values as `JSON.stringify` leaves them. */
const json = fc
  .jsonValue({ maxDepth: 2 })
  .map((value) => JSON.stringify(value))
  .filter((value) => !value.includes("__proto__"))
  .map((value) => JSON.parse(value) as JsonValue);
const metadata: fc.Arbitrary<JsonObject> = fc.dictionary(word, json, { maxKeys: 2, noNullPrototype: true });

interface Values {
  readonly part: fc.Arbitrary<Part>;
  readonly message: fc.Arbitrary<Message>;
  readonly reply: fc.Arbitrary<Message>;
  readonly task: fc.Arbitrary<Task>;
  readonly frames: fc.Arbitrary<StreamFrame[]>;
}

export function valuesWithin(can: Abilities): Values {
  const kinds: fc.Arbitrary<Part>[] = [];
  if (can.parts.text) kinds.push(text.map((value) => ({ text: value })));
  if (can.parts.raw)
    kinds.push(fc.uint8Array({ maxLength: 9 }).map((bytes) => ({ raw: Buffer.from(bytes).toString("base64") })));
  if (can.parts.url) kinds.push(fc.webUrl().map((url) => ({ url, filename: "file" })));
  if (can.parts.data) kinds.push(json.map((data) => ({ data })));
  const part = fc.oneof(...kinds);
  const extra = can.metadata ? { metadata } : {};
  const messageOf = (role: Message["role"]) =>
    fc.record(
      {
        messageId: word,
        role: fc.constant(role),
        parts: fc.array(part, { minLength: 1, maxLength: 3 }),
        contextId: word,
        ...extra,
      },
      { requiredKeys: ["messageId", "role", "parts", "contextId"], noNullPrototype: true },
    ) as fc.Arbitrary<Message>;
  const artifact: fc.Arbitrary<Artifact> = fc.record(
    { artifactId: word, parts: fc.array(part, { minLength: 1, maxLength: 2 }) },
    { noNullPrototype: true },
  );
  const status = fc.record(
    { state: fc.constantFrom(...TASK_STATES), message: messageOf("ROLE_AGENT") },
    { requiredKeys: ["state"], noNullPrototype: true },
  );
  const task = fc.record(
    {
      id: word,
      contextId: word,
      status,
      ...(can.artifacts
        ? { artifacts: fc.uniqueArray(artifact, { minLength: 1, maxLength: 2, selector: (one) => one.artifactId }) }
        : {}),
      history: fc.array(messageOf("ROLE_USER"), { minLength: 1, maxLength: 2 }),
      ...extra,
    },
    { requiredKeys: ["id", "contextId", "status"], noNullPrototype: true },
  ) as fc.Arbitrary<Task>;
  return {
    part,
    message: messageOf("ROLE_USER"),
    reply: messageOf("ROLE_AGENT"),
    task,
    frames: task.chain((begun) => framesOf(begun, artifact, can)),
  };
}

function framesOf(begun: Task, artifact: fc.Arbitrary<Artifact>, can: Abilities): fc.Arbitrary<StreamFrame[]> {
  const scope = { taskId: begun.id, contextId: begun.contextId };
  const update: fc.Arbitrary<StreamEvent> = fc.oneof(
    fc.constant({ statusUpdate: { ...scope, status: { state: "TASK_STATE_WORKING" as const } } }),
    ...(can.artifacts
      ? [
          fc.tuple(artifact, fc.boolean()).map(([chunk, append]) => ({
            artifactUpdate: { ...scope, artifact: chunk, ...(append ? { append } : {}) },
          })),
        ]
      : []),
  );
  const end: StreamEvent = { statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED" } } };
  return fc
    .array(update, { maxLength: 5 })
    .map((updates) => [{ task: begun }, ...updates, end].map((event, index) => frameOf(event, index + 1)));
}

export function frameOf(event: StreamEvent, number: number): StreamFrame {
  return { number, event, json: JSON.stringify(event) };
}

/** A subscription after the end of a task, which may be answered without a stream, so that browsers stop. */
export function beginsWithEnd([event]: readonly StreamEvent[]): boolean {
  return event !== undefined && "task" in event && isTerminal(event.task.status.state);
}

/** One of each, also for testing operations that a dialect does not support. */
export const OPERATIONS: { readonly [Kind in Operation["kind"]]: Extract<Operation, { kind: Kind }> } = {
  send: { kind: "send", message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }], contextId: "c" } },
  stream: {
    kind: "stream",
    message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }], contextId: "c" },
  },
  get: { kind: "get", id: "t" },
  list: { kind: "list" },
  cancel: { kind: "cancel", id: "t" },
  subscribe: { kind: "subscribe", id: "t", after: 1 },
  "push-create": { kind: "push-create", taskId: "t", config: { url: "https://hook.example" } },
  "push-get": { kind: "push-get", taskId: "t", id: "p" },
  "push-list": { kind: "push-list", taskId: "t" },
  "push-delete": { kind: "push-delete", taskId: "t", id: "p" },
  "extended-card": { kind: "extended-card" },
};

/** A part of each kind; a dialect must report those that it cannot express. */
export const PARTS: { readonly [Kind in keyof Abilities["parts"]]: Part } = {
  text: { text: "hello" },
  raw: { raw: "aGVsbG8=" },
  url: { url: "https://file.example/a" },
  data: { data: { hello: true } },
};
