/** Legal logs of one task, for property tests. */

import fc from "fast-check";
import { LogEntry, type TaskEvent } from "../event.ts";
import { type Message, type Part, ROLES } from "../message.ts";
import { isTerminal, isTransitionAllowed, TASK_STATES, type TaskState } from "../task.ts";

export const ID = "task";
export const CONTEXT = "context";

const word = fc.string({ maxLength: 6 });

/** As JSON and its readers leave it: no negative zero, no null prototypes, no keys that would set a prototype. */
const json = fc
  .jsonValue({ maxDepth: 1 })
  .map((value) => JSON.stringify(value))
  .filter((text) => !text.includes("__proto__"))
  .map((text) => JSON.parse(text));

const part: fc.Arbitrary<Part> = fc.oneof(
  { weight: 4, arbitrary: word.map((text) => ({ text })) },
  { weight: 1, arbitrary: word.map((text) => ({ text, mediaType: "text/markdown" })) },
  { weight: 1, arbitrary: json.map((data) => ({ data }) as Part) },
  { weight: 1, arbitrary: word.map((url) => ({ url, filename: "f" })) },
);

export const message: fc.Arbitrary<Message> = fc.record({
  messageId: fc.uuid(),
  role: fc.constantFrom(...ROLES),
  parts: fc.array(part, { minLength: 1, maxLength: 2 }),
});

const optional = <T extends object>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

interface Step {
  readonly event: TaskEvent;
  readonly received: Message | undefined;
}

const chunk: fc.Arbitrary<Step> = fc
  .record({
    artifactId: fc.constantFrom("a", "b", "c"),
    parts: fc.array(part, { minLength: 1, maxLength: 3 }),
    append: fc.boolean(),
    lastChunk: fc.boolean(),
    description: fc.option(word, { nil: undefined }),
  })
  .map(({ artifactId, parts, append, lastChunk, description }) => ({
    event: {
      artifactUpdate: {
        taskId: ID,
        contextId: CONTEXT,
        artifact: { artifactId, parts, ...(description === undefined ? undefined : { description }) },
        ...(append ? { append } : undefined),
        ...(lastChunk ? { lastChunk } : undefined),
      },
    },
    received: undefined,
  }));

/** A state to move to; whether the move is legal is decided when the log is put together. */
const move = fc
  .record({ state: fc.constantFrom(...TASK_STATES), said: optional(message), received: optional(message) })
  .map(
    ({ state, said, received }): Step => ({
      event: {
        statusUpdate: {
          taskId: ID,
          contextId: CONTEXT,
          status: said === undefined ? { state } : { state, message: said },
        },
      },
      received,
    }),
  );

const beginning = fc.record({ question: message, hasMetadata: fc.boolean() }).map(
  ({ question, hasMetadata }): Step => ({
    event: {
      task: {
        id: ID,
        contextId: CONTEXT,
        status: { state: "TASK_STATE_SUBMITTED" },
        history: [question],
        ...(hasMetadata ? { metadata: { kept: true } } : undefined),
      },
    },
    received: undefined,
  }),
);

function stateOf(event: TaskEvent): TaskState | undefined {
  return "statusUpdate" in event ? event.statusUpdate.status.state : undefined;
}

/** Any log that the rules allow; steps that are not allowed where they stand are left out. */
export const legalLog: fc.Arbitrary<LogEntry[]> = fc
  .tuple(
    beginning,
    fc.array(fc.oneof({ weight: 3, arbitrary: chunk }, { weight: 2, arbitrary: move }), { maxLength: 25 }),
  )
  .map(([first, steps]) => {
    let state: TaskState = "TASK_STATE_SUBMITTED";
    const kept = [first];
    for (const step of steps) {
      if (isTerminal(state)) break;
      const next = stateOf(step.event);
      if (next !== undefined && !isTransitionAllowed(state, next)) continue;
      state = next ?? state;
      kept.push(step);
    }
    return kept.map(({ event, received }, index) => LogEntry.of(index + 1, event, received));
  });

/** Any single event, legal or not. */
export const anyEvent: fc.Arbitrary<TaskEvent> = fc.oneof(beginning, chunk, move).map(({ event }) => event);
