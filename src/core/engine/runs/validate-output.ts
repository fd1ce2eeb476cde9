import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { Part } from "../../model/message.ts";
import { jsonSize } from "../../model/size.ts";
import { statusText } from "../../model/status-texts.ts";
import { TASK_STATES } from "../../model/task.ts";
import type { AgentState, ArtifactDraft, MessageDraft } from "../agent.ts";

/**
 * Output of agents is validated where it comes in: one value that is not JSON would otherwise spoil the write it shares
 * with other tasks. Plain text passes as it is; structured values are copied, so that an agent that continues to use its
 * object cannot change the log.
 */
export function validateArtifact(draft: ArtifactDraft): ArtifactDraft {
  requireText(draft.artifactId, "artifactId");
  requireText(draft.name, "name");
  requireText(draft.description, "description");
  const parts = validateParts(draft.parts);
  if (parts === draft.parts && draft.metadata === undefined) return draft;
  return { ...draft, parts, ...toMetadataMember(draft.metadata) };
}

function requireText(value: unknown, name: string): void {
  if (value !== undefined && typeof value !== "string") throw new TypeError(`${name} of an artifact must be text.`);
}

/** For agents that no compiler checked: what they yield must be an event. */
export function requireEvent(yielded: unknown): void {
  if (isObject(yielded) && ("status" in yielded || isObject(yielded.artifact))) return;
  if (isObject(yielded) && "next" in yielded) {
    throw new TypeError('The agent yielded a stream instead of its events: write "yield* turn.stream(…)".');
  }
  throw new TypeError(
    `The agent yielded ${typeof yielded === "string" ? "text" : "something"} that is not an event: write "yield turn.artifact({ name, text })".`,
  );
}

/** What a generator returns, which is its answer if it yielded nothing. */
export function requireReply(returned: unknown): void {
  if (returned === undefined || (isObject(returned) && "parts" in returned)) return;
  throw new TypeError('The agent returned something that is not a message: write "return turn.reply(…)".');
}

const AGENT_STATES: ReadonlySet<string> = new Set(TASK_STATES.filter((state) => state !== "TASK_STATE_SUBMITTED"));

/** An agent may bring its task to any state but that of being submitted, which is where tasks begin. */
export function validateState(state: AgentState): AgentState {
  if (AGENT_STATES.has(state)) return state;
  throw new TypeError(`An agent cannot bring its task to ${String(state)}.`);
}

export function validateMessage(draft: MessageDraft): MessageDraft {
  const parts = validateParts(draft.parts);
  if (parts === draft.parts && draft.metadata === undefined) return draft;
  return { ...draft, parts, ...toMetadataMember(draft.metadata) };
}

export function validateMetadata(metadata: JsonObject | undefined): JsonObject | undefined {
  if (metadata === undefined) return undefined;
  const copy = toJson(metadata, "metadata");
  if (typeof copy !== "object" || copy === null || Array.isArray(copy))
    throw new TypeError("metadata must be an object.");
  return copy as JsonObject;
}

/** What an agent said is more than it may say. The text is fit for the caller. */
export class OutputLimitError extends Error {
  override readonly name = "OutputLimitError";
}

/** Refuses a part that alone is too long. */
export function checkParts(parts: readonly Part[], longest: number): void {
  for (const part of parts) {
    if (isLonger(part, longest)) throw new OutputLimitError(statusText("partTooLong", longest));
  }
}

/** An escaped character is six in JSON, and a value with all that is around it less than six times its size. */
const MAX_JSON_FACTOR = 6;

/** Whether the content of a part has more characters. */
export function isLonger(part: Part, characters: number): boolean {
  if (!("data" in part)) return contentOf(part).length > characters;
  if (jsonSize(part.data) * MAX_JSON_FACTOR <= characters) return false;
  return JSON.stringify(part.data).length > characters;
}

function validateParts(parts: readonly Part[]): readonly Part[] {
  if (!Array.isArray(parts) || parts.length === 0) throw new TypeError("parts must be a list of at least one part.");
  return (parts as readonly Part[]).every(isPlain) ? parts : (parts as readonly Part[]).map(validatePart);
}

/** Only strings in it: nothing can be wrong and nothing can change. */
function isPlain(part: Part): boolean {
  return (
    hasOneContent(part) &&
    part.metadata === undefined &&
    !("data" in part) &&
    typeof contentOf(part) === "string" &&
    (part.filename === undefined || typeof part.filename === "string") &&
    (part.mediaType === undefined || typeof part.mediaType === "string")
  );
}

/** Exactly one: readers tell parts apart by the member that is there. */
function hasOneContent(part: Part): boolean {
  return Number("text" in part) + Number("raw" in part) + Number("url" in part) + Number("data" in part) === 1;
}

function contentOf(part: Exclude<Part, { data: JsonValue }>): string {
  if ("text" in part) return part.text;
  return "raw" in part ? part.raw : part.url;
}

function validatePart(part: Part): Part {
  if (isPlain(part)) return part;
  if (!hasOneContent(part)) throw new TypeError("A part must have exactly one of text, raw, url and data.");
  const metadata = toMetadataMember(part.metadata);
  if ("data" in part) return { ...part, data: toJson(part.data, "data"), ...metadata };
  if (typeof contentOf(part) !== "string") throw new TypeError("A part must have text, raw, url or data.");
  return { ...part, ...metadata };
}

function toMetadataMember(metadata: JsonObject | undefined): { readonly metadata?: JsonObject } {
  const checked = validateMetadata(metadata);
  return checked === undefined ? {} : { metadata: checked };
}

function toJson(value: unknown, what: string): JsonValue {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`${what} must be JSON.`);
  return JSON.parse(text) as JsonValue;
}
