/** A made-up wire form, far enough from the model that every name has to be translated. */

import { z } from "zod";
import { ERROR_CODES, ProtocolError } from "../../../src/core/model/errors.ts";
import type { StreamEvent } from "../../../src/core/model/event.ts";
import type { JsonObject, JsonValue } from "../../../src/core/model/json.ts";
import type { Message, Part } from "../../../src/core/model/message.ts";
import { type Artifact, TASK_STATES, type Task, type TaskState } from "../../../src/core/model/task.ts";

const text = z.string();
const json = z.json() as z.ZodType<JsonValue>;
const object = z.record(z.string(), json) as z.ZodType<JsonObject>;
const beside = { file: text.optional(), kind: text.optional(), meta: object.optional() };

const part = z
  .union([
    z.strictObject({ w: text, ...beside }),
    z.strictObject({ b: text, ...beside }),
    z.strictObject({ u: text, ...beside }),
    z.strictObject({ d: json, ...beside }),
  ])
  .transform((given): Part => {
    const common = stripped({ filename: given.file, mediaType: given.kind, metadata: given.meta });
    if ("w" in given) return { text: given.w, ...common };
    if ("b" in given) return { raw: given.b, ...common };
    return "u" in given ? { url: given.u, ...common } : { data: given.d, ...common };
  });

const message = z
  .strictObject({
    mid: text,
    by: z.enum(["user", "agent"]),
    say: z.array(part),
    session: text.optional(),
    job: text.optional(),
    meta: object.optional(),
    plus: z.array(text).optional(),
    about: z.array(text).optional(),
  })
  .transform(
    (given): Message =>
      stripped({
        messageId: given.mid,
        role: given.by === "user" ? "ROLE_USER" : "ROLE_AGENT",
        parts: given.say,
        contextId: given.session,
        taskId: given.job,
        metadata: given.meta,
        extensions: given.plus,
        referenceTaskIds: given.about,
      }) as Message,
  );

const state = z.string().transform((word, context): TaskState => {
  const known = TASK_STATES.find((one) => wordOf(one) === word);
  if (known !== undefined) return known;
  context.addIssue({ code: "custom", message: "no state" });
  return z.NEVER;
});

const status = z
  .strictObject({ is: state, said: message.optional(), at: text.optional() })
  .transform(({ is, said, at }) => stripped({ state: is, message: said, timestamp: at }) as Task["status"]);

const artifact = z
  .strictObject({
    key: text,
    name: text.optional(),
    about: text.optional(),
    say: z.array(part),
    meta: object.optional(),
    plus: z.array(text).optional(),
  })
  .transform(
    ({ key, name, about, say, meta, plus }) =>
      stripped({
        artifactId: key,
        name,
        description: about,
        parts: say,
        metadata: meta,
        extensions: plus,
      }) as Artifact,
  );

const task = z
  .strictObject({
    job: text,
    session: text,
    now: status,
    made: z.array(artifact).optional(),
    talk: z.array(message).optional(),
    meta: object.optional(),
  })
  .transform(
    ({ job, session, now, made, talk, meta }) =>
      stripped({ id: job, contextId: session, status: now, artifacts: made, history: talk, metadata: meta }) as Task,
  );

const scope = { job: text, session: text, meta: object.optional() };
const event = z.union([
  z.strictObject({ task }),
  z.strictObject({ message }),
  z.strictObject({ moved: z.strictObject({ ...scope, now: status }) }).transform(({ moved }): StreamEvent => {
    const { job, session, now, meta } = moved;
    return { statusUpdate: { taskId: job, contextId: session, status: now, ...stripped({ metadata: meta }) } };
  }),
  z
    .strictObject({
      piece: z.strictObject({
        ...scope,
        of: artifact,
        more: z.literal(true).optional(),
        last: z.literal(true).optional(),
      }),
    })
    .transform(({ piece }): StreamEvent => {
      const { job, session, of, more, last, meta } = piece;
      const flags = stripped({ append: more, lastChunk: last, metadata: meta });
      return { artifactUpdate: { taskId: job, contextId: session, artifact: of, ...flags } };
    }),
]);

const ask = z.int().nonnegative();
const question = z.union([
  z.strictObject({ ask, do: z.enum(["say", "tell"]), message, soon: z.literal(true).optional() }),
  z.strictObject({ ask, do: z.enum(["look", "stop"]), job: text }),
  z.strictObject({ ask, do: z.literal("watch"), job: text, after: z.int().positive().optional() }),
  z.strictObject({ ask, do: z.literal("hush") }),
]);

const answer = z.union([
  z.strictObject({ re: ask, task }),
  z.strictObject({ re: ask, message }),
  z.strictObject({ re: ask, event, at: z.int().positive().optional() }),
  z.strictObject({ re: ask, begin: z.literal(true) }),
  z.strictObject({ re: ask, end: z.literal(true) }),
  z.strictObject({ re: ask, error: z.strictObject({ code: z.enum(ERROR_CODES), text }) }),
]);

export type Question = z.output<typeof question>;
export type Answer = z.output<typeof answer>;

export function readQuestion(given: string): Question {
  return read(question, given, "INVALID_REQUEST");
}

export function readAnswer(given: string): Answer {
  return read(answer, given, "INVALID_AGENT_RESPONSE");
}

function read<T>(schema: z.ZodType<T>, given: string, code: "INVALID_REQUEST" | "INVALID_AGENT_RESPONSE"): T {
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch (cause) {
    throw new ProtocolError("PARSE_ERROR", "The frame is not JSON.", { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ProtocolError(code, "The frame cannot be understood.", { metadata: numberOf(value) });
}

/** So that a question nobody understands can still be answered. */
function numberOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null || !("ask" in value)) return {};
  return Number.isSafeInteger(value.ask) ? { ask: String(value.ask) } : {};
}

export function wordOf(given: TaskState): string {
  return given.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", "-");
}

type Stripped<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the members that are undefined. */
function stripped<T extends object>(value: T): Stripped<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Stripped<T>;
}
