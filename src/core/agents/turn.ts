import { type Content, data, type Jsonable, toParts } from "../client/parts.ts";
import type {
  AgentEvent,
  AgentState,
  ArtifactDraft,
  ConversationMemory,
  MessageDraft,
  Turn,
  TurnMemory,
} from "../engine/agent.ts";
import type { Caller } from "../model/caller.ts";
import type { Hops } from "../model/extensions.ts";
import type { JsonObject, JsonValue } from "../model/json.ts";
import { type Message, type Part, textOf } from "../model/message.ts";
import type { MadeEvents } from "./made-events.ts";

type StatusEvent = Extract<AgentEvent, { status: AgentState }>;
export type ArtifactEvent = Extract<AgentEvent, { artifact: ArtifactDraft }>;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

type ArtifactContent<T> =
  | { readonly parts: readonly Part[]; readonly text?: never; readonly data?: never }
  | { readonly text: string; readonly parts?: never; readonly data?: never }
  | { readonly data: T & Jsonable<T>; readonly parts?: never; readonly text?: never };

interface ArtifactHead {
  readonly name?: string;
  /** Default: the name, so that a repeated run replaces the artifact instead of adding another. */
  readonly artifactId?: string;
  readonly description?: string;
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

export type ArtifactOptions<T = unknown> = ArtifactHead &
  ArtifactContent<T> & {
    /**
     * Add the parts to the artifact of the same id instead of replacing it. When a run is repeated after a crash, the
     * first chunk replaces what the earlier run wrote, unless the run continues: it has read with `turn.memory.get` what
     * that one stored.
     */
    readonly append?: boolean;
    /** No more parts will be added. */
    readonly lastChunk?: boolean;
  };

type StreamOptions = Omit<ArtifactHead, "name">;

type MessageOptions = Omit<MessageDraft, "parts">;

/** The functions whose results have to be yielded, or returned. */
type NotedMethod =
  | "artifact"
  | "authRequired"
  | "completed"
  | "failed"
  | "inputRequired"
  | "rejected"
  | "reply"
  | "stream"
  | "working";

const WORKING: StatusEvent = { status: "TASK_STATE_WORKING" };
const COMPLETED: StatusEvent = { status: "TASK_STATE_COMPLETED" };

/** One message to an agent, and the methods to answer it. */
export class AgentTurn implements Turn {
  readonly #turn: Turn;
  readonly #made: MadeEvents | undefined;
  #text: string | undefined;

  constructor(turn: Turn, made?: MadeEvents) {
    this.#turn = turn;
    this.#made = made;
    made?.beginTurn();
  }

  #note<T>(made: T, draft: object | undefined, name: NotedMethod): T {
    const { unyielded } = this.#turn;
    if (draft !== undefined && unyielded !== undefined) this.#made?.note(unyielded, draft, name, this[name]);
    return made;
  }

  #status(name: NotedMethod, state: AgentState, content: Content): StatusEvent {
    const event = status(state, content);
    return this.#note(event, event.message, name);
  }

  /** The text parts of the message, one per line; empty if there are none. */
  get text(): string {
    this.#text ??= textOf(this.#turn.message.parts);
    return this.#text;
  }

  /** The whole message. */
  get message(): Message {
    return this.#turn.message;
  }

  /** The parts of the message. `bytesOf(part)` reads the content of a file. */
  get parts(): readonly Part[] {
    return this.#turn.message.parts;
  }

  /** Earlier messages of this task, oldest first; only the newest of them if there are many. */
  get history(): readonly Message[] {
    return this.#turn.history;
  }

  /** The task, and the conversation that it belongs to. */
  get task(): Turn["task"] {
    return this.#turn.task;
  }

  /** The caller: `owner`, `authenticated`, `scopes`, `address`. */
  get caller(): Caller {
    return this.#turn.caller;
  }

  /** Aborted when the task is cancelled, times out, or this process may no longer run it. */
  get signal(): AbortSignal {
    return this.#turn.signal;
  }

  /** Values that survive a crash and last as long as the task: `get`, `set`, `delete`, `once`. */
  get memory(): TurnMemory {
    return this.#turn.memory;
  }

  /**
   * Values of the conversation, which all tasks of the caller in this context share, also across restarts: `get`, `set`,
   * `append`.
   */
  get conversation(): ConversationMemory {
    const { conversation } = this.#turn;
    if (conversation === undefined) throw new TypeError("turn.conversation needs a server that runs the agent.");
    return conversation;
  }

  /** 1, or more if the run was restarted after a crash. */
  get attempt(): number {
    return this.#turn.attempt;
  }

  /** `checkpoint` of the newest event that has one, if the run was restarted after a crash. */
  get checkpoint(): JsonValue | undefined {
    return this.#turn.checkpoint;
  }

  /** Media types that the caller accepts; empty if not specified. */
  get acceptedOutputModes(): readonly string[] {
    return this.#turn.acceptedOutputModes;
  }

  /** Metadata of the request, not of the message. */
  get metadata(): JsonObject | undefined {
    return this.#turn.metadata;
  }

  /** Agents that the request came through, including this one. Pass it on: `connect(url, { hops: turn.hops })`. */
  get hops(): Hops {
    return this.#turn.hops;
  }

  /** The task is in progress; with a message, progress that callers see. */
  working(content?: Content): StatusEvent {
    return content === undefined ? WORKING : this.#status("working", "TASK_STATE_WORKING", content);
  }

  /** Asks the caller for input. Yield it last: the reply starts a new turn of the same task. */
  inputRequired(content: Content): StatusEvent {
    return this.#status("inputRequired", "TASK_STATE_INPUT_REQUIRED", content);
  }

  /** Asks the caller to authenticate out of band. */
  authRequired(content: Content): StatusEvent {
    return this.#status("authRequired", "TASK_STATE_AUTH_REQUIRED", content);
  }

  /** Completes the task with a message. A run that returns nothing completes it without one. */
  completed(content?: Content): StatusEvent {
    return content === undefined ? COMPLETED : this.#status("completed", "TASK_STATE_COMPLETED", content);
  }

  /** Ends the task as failed, with the reason for the caller. Throwing also fails it, but does not send the reason. */
  failed(content: Content): StatusEvent {
    return this.#status("failed", "TASK_STATE_FAILED", content);
  }

  /** Ends the task as rejected: the agent does not accept the request. */
  rejected(content: Content): StatusEvent {
    return this.#status("rejected", "TASK_STATE_REJECTED", content);
  }

  /** A result, or a chunk of one. */
  artifact<T>(options: ArtifactOptions<T>): ArtifactEvent {
    const event: Mutable<ArtifactEvent> = { artifact: draftOf(options, partsOf(options)) };
    if (options.append !== undefined) event.append = options.append;
    if (options.lastChunk !== undefined) event.lastChunk = options.lastChunk;
    return this.#note(event, event.artifact, "artifact");
  }

  /**
   * A text artifact streamed in chunks: `yield* turn.stream("notes", chunks)`. The last chunk is marked as such. Empty
   * chunks are skipped; without chunks there is no artifact.
   */
  stream(
    name: string,
    chunks: Iterable<string> | AsyncIterable<string>,
    options: StreamOptions = {},
  ): AsyncGenerator<ArtifactEvent, void, undefined> {
    const first: ArtifactHead = { ...options, name };
    const next: ArtifactHead = { artifactId: options.artifactId ?? name, name };
    const key = {};
    const begin = () => void this.#turn.unyielded?.delete(key);
    const events =
      Symbol.asyncIterator in chunks
        ? streamAsyncChunks(first, next, chunks, begin)
        : streamSyncChunks(first, next, chunks, begin);
    return this.#note(events, key, "stream");
  }

  /** A direct reply: return it, before any event was yielded, to reply without a task. */
  reply(content: Content, options?: MessageOptions): MessageDraft {
    const message = { parts: toParts(content), ...options };
    return this.#note(message, message, "reply");
  }
}

/** The end is sent as an empty chunk: holding back each chunk until the next one arrives would delay readers. */
async function* streamAsyncChunks(
  first: ArtifactHead,
  next: ArtifactHead,
  chunks: AsyncIterable<string>,
  begin: () => void,
): AsyncGenerator<ArtifactEvent, void, undefined> {
  begin();
  let begun = false;
  for await (const chunk of chunks) {
    if (chunk === "") continue;
    yield chunkEvent(begun ? next : first, chunk, begun);
    begun = true;
  }
  if (begun) yield { ...chunkEvent(next, "", true), lastChunk: true };
}

/** The next chunk is available at once, so each can look ahead whether it is the last. */
async function* streamSyncChunks(
  first: ArtifactHead,
  next: ArtifactHead,
  chunks: Iterable<string>,
  begin: () => void,
): AsyncGenerator<ArtifactEvent, void, undefined> {
  begin();
  let head = first;
  let held: string | undefined;
  for (const chunk of chunks) {
    if (chunk === "") continue;
    if (held !== undefined) {
      yield chunkEvent(head, held, head === next);
      head = next;
    }
    held = chunk;
  }
  if (held !== undefined) yield { ...chunkEvent(head, held, head === next), lastChunk: true };
}

function status(state: AgentState, content: Content): StatusEvent {
  return { status: state, message: { parts: toParts(content) } };
}

function chunkEvent(head: ArtifactHead, text: string, append: boolean): ArtifactEvent {
  const artifact = draftOf(head, [{ text }]);
  return append ? { artifact, append } : { artifact };
}

function draftOf(options: ArtifactHead, parts: readonly Part[]): ArtifactDraft {
  const artifactId = options.artifactId ?? options.name;
  const head: Mutable<ArtifactDraft> = artifactId === undefined ? { parts } : { artifactId, parts };
  if (options.name !== undefined) head.name = options.name;
  if (options.description !== undefined) head.description = options.description;
  if (options.metadata !== undefined) head.metadata = options.metadata;
  if (options.extensions !== undefined) head.extensions = options.extensions;
  return head;
}

function partsOf<T>(options: ArtifactContent<T>): readonly Part[] {
  if (options.parts !== undefined) return options.parts;
  if (options.text !== undefined) return [{ text: options.text }];
  if (options.data !== undefined) return [data<T>(options.data)];
  throw new TypeError("An artifact needs parts, text or data.");
}
