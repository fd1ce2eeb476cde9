import { z } from "zod";
import { type Content, toParts } from "../../client/parts.ts";
import type { AgentState, MessageDraft } from "../../engine/agent.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Part } from "../../model/message.ts";
import type { ArtifactOptions } from "../turn.ts";

/** Bounds memory: a line longer than this many characters is passed on in pieces. */
const MAX_LINE_LENGTH = 1_048_576;

/** Lines of one read that are passed on individually; further ones are joined, so that they do not block other work. */
const MAX_LINES_PER_READ = 64;
const MAY_BE_JSON = /^\s*\{/;

export interface Line {
  /** Including its newline, so that the concatenated lines are the whole output. */
  readonly text: string;
  /** False for pieces of a line that was too long to buffer, and for lines of text that were joined. */
  readonly whole: boolean;
}

/** Splits decoded text into lines, reading only when the consumer requests more. */
export async function* splitLines(
  chunks: AsyncIterable<string>,
  maxLength: number = MAX_LINE_LENGTH,
): AsyncGenerator<Line, void, undefined> {
  let pending = "";
  let whole = true;
  for await (const chunk of chunks) {
    let start = 0;
    let count = 0;
    let joined = "";
    for (let end = chunk.indexOf("\n"); end !== -1; end = chunk.indexOf("\n", start)) {
      const text = pending + chunk.slice(start, end + 1);
      if (count++ < MAX_LINES_PER_READ || MAY_BE_JSON.test(text)) {
        if (joined !== "") yield { text: joined, whole: false };
        joined = "";
        yield { text, whole };
      } else joined += text;
      pending = "";
      whole = true;
      start = end + 1;
    }
    if (joined !== "") yield { text: joined, whole: false };
    pending += chunk.slice(start);
    if (pending.length > maxLength) {
      yield { text: pending, whole: false };
      pending = "";
      whole = false;
    }
  }
  if (pending !== "") yield { text: pending, whole };
}

/** A line of output that is an event and not plain text. */
export type OutputEvent =
  | { readonly kind: "status"; readonly state: AgentState; readonly message: MessageDraft | undefined }
  | { readonly kind: "artifact"; readonly options: ArtifactOptions }
  | { readonly kind: "message"; readonly message: MessageDraft };

const STATES: ReadonlyMap<string, AgentState> = new Map(
  (
    [
      "TASK_STATE_WORKING",
      "TASK_STATE_INPUT_REQUIRED",
      "TASK_STATE_AUTH_REQUIRED",
      "TASK_STATE_COMPLETED",
      "TASK_STATE_FAILED",
      "TASK_STATE_REJECTED",
    ] as const
  ).map((state) => [plainName(state), state]),
);

const jsonObject = z.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
const common = {
  metadata: jsonObject.exactOptional(),
  filename: z.string().exactOptional(),
  mediaType: z.string().exactOptional(),
};
const part: z.ZodType<Part> = z.union([
  z.strictObject({ text: z.string(), ...common }),
  z.strictObject({ raw: z.base64(), ...common }),
  z.strictObject({ url: z.string(), ...common }),
  z.strictObject({ data: z.json(), ...common }),
]);
const parts = z.array(part).min(1);

/** A string, a list of parts, or an object with one of them. */
const content: z.ZodType<Content> = z.union([
  z.string(),
  parts,
  z.strictObject({ text: z.string() }).transform((value) => value.text),
  z.strictObject({ parts }).transform((value) => value.parts),
]);

const state = z.string().transform((name, context): AgentState => {
  const known = STATES.get(plainName(name));
  if (known !== undefined) return known;
  context.addIssue({ code: "custom", message: "no state of a task" });
  return z.NEVER;
});

const artifactHead = {
  name: z.string().exactOptional(),
  artifactId: z.string().min(1).exactOptional(),
  description: z.string().exactOptional(),
  metadata: jsonObject.exactOptional(),
  extensions: z.array(z.string()).exactOptional(),
  append: z.boolean().exactOptional(),
  lastChunk: z.boolean().exactOptional(),
};

const outputLine: z.ZodType<OutputEvent> = z.union([
  z.strictObject({ status: state }).transform((value) => statusOf(value.status, undefined)),
  z
    .strictObject({ status: z.strictObject({ state, message: content.optional() }) })
    .transform(({ status }) => statusOf(status.state, status.message)),
  z.strictObject({ status: z.string() }).transform((value) => statusOf("TASK_STATE_WORKING", value.status)),
  z
    .strictObject({ inputRequired: content })
    .transform((value) => statusOf("TASK_STATE_INPUT_REQUIRED", value.inputRequired)),
  z
    .strictObject({ message: content })
    .transform((value) => ({ kind: "message" as const, message: draftOf(value.message) })),
  z
    .strictObject({
      artifact: z.union([
        z.strictObject({ ...artifactHead, parts }),
        z
          .strictObject({ ...artifactHead, text: z.string() })
          .transform(({ text, ...head }) => ({ ...head, parts: toParts(text) })),
        z
          .strictObject({ ...artifactHead, data: z.json() })
          .transform(({ data, ...head }) => ({ ...head, parts: [{ data }] })),
      ]),
    })
    .transform((value) => ({ kind: "artifact" as const, options: value.artifact })),
]);

/** Cheap check that sorts out most lines of text before parsing. */
const MAY_BE_EVENT = /^\s*\{\s*"(?:status|artifact|inputRequired|message)"\s*:/;

/** The event encoded in a line; undefined for text, including JSON that only resembles an event. */
export function readOutputEvent(text: string): OutputEvent | undefined {
  if (!MAY_BE_EVENT.test(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return outputLine.safeParse(value).data;
}

function statusOf(to: AgentState, value: Content | undefined): OutputEvent {
  return { kind: "status", state: to, message: value === undefined ? undefined : draftOf(value) };
}

function draftOf(value: Content): MessageDraft {
  return { parts: toParts(value) };
}

/** `TASK_STATE_INPUT_REQUIRED`, `input-required` and `inputRequired` are the same state. */
function plainName(name: string): string {
  return name
    .replace(/^TASK_STATE_/, "")
    .replace(/[-_]/g, "")
    .toLowerCase();
}
