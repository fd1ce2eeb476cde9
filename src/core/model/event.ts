import type { JsonObject, JsonValue } from "./json.ts";
import type { Message, Part } from "./message.ts";
import { eventSize, messageSize } from "./size.ts";
import type { Artifact, Task, TaskState, TaskStatus } from "./task.ts";

export interface TaskStatusUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly metadata?: JsonObject;
}

export interface TaskArtifactUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  /** true: add the parts to the artifact of that id; otherwise create or replace it. */
  readonly append?: boolean;
  readonly lastChunk?: boolean;
  readonly metadata?: JsonObject;
}

/** What a task's log is made of, in the shape a 1.0 stream shows it. A log begins with `task` and has no other. */
export type TaskEvent =
  | { readonly task: Task }
  | { readonly statusUpdate: TaskStatusUpdate }
  | { readonly artifactUpdate: TaskArtifactUpdate };

/** What a stream may carry: a task's events, or the one message of an agent that answered without a task. */
export type StreamEvent = TaskEvent | { readonly message: Message };

export function taskIdOf(event: TaskEvent): string {
  if ("task" in event) return event.task.id;
  return "statusUpdate" in event ? event.statusUpdate.taskId : event.artifactUpdate.taskId;
}

/** The state that an event says its task is in; undefined if it is about something else. */
export function stateOf(event: TaskEvent): TaskState | undefined {
  if ("task" in event) return event.task.status.state;
  return "statusUpdate" in event ? event.statusUpdate.status.state : undefined;
}

/** What is kept with an event and not shown: what came beside a message, for the run that answers it and its resumption. */
export interface RequestDetails {
  readonly metadata?: JsonObject;
  readonly acceptedOutputModes?: readonly string[];
  readonly authenticated?: boolean;
  /** When the caller gives up, in milliseconds since the epoch. */
  readonly deadline?: number;
  /** How far the run had come with this event. */
  readonly checkpoint?: JsonValue;
}

/**
 * The JSON around the text of a chunk. The chunks of a streamed answer differ in nothing but their text: they share one
 * of these, and only the text is encoded and kept for each.
 */
export class ChunkFrame {
  readonly before: string;
  readonly after: string;
  readonly #taskId: string;
  readonly #contextId: string;
  readonly #artifactId: string;
  readonly #name: string | undefined;

  private constructor({ taskId, contextId, artifact: { artifactId, name } }: TaskArtifactUpdate) {
    this.#taskId = taskId;
    this.#contextId = contextId;
    this.#artifactId = artifactId;
    this.#name = name;
    const start = JSON.stringify({ artifactUpdate: { taskId, contextId, artifact: { artifactId, parts: [] } } });
    // Joined and not concatenated, which would leave a rope that every chunk had to follow.
    this.before = [start.slice(0, start.lastIndexOf("]")), '{"text":'].join("");
    this.after = ["}]", name === undefined ? "" : `,"name":${JSON.stringify(name)}`, '},"append":true}}'].join("");
  }

  /** Of this event: the same as that of an earlier one if they differ only in text; undefined if it is not such a chunk. */
  static of(event: TaskEvent, earlier: ChunkFrame | undefined): ChunkFrame | undefined {
    if (!("artifactUpdate" in event)) return undefined;
    const { artifactUpdate } = event;
    if (!isTextChunk(artifactUpdate)) return undefined;
    if (earlier === undefined || !earlier.#fits(artifactUpdate)) return new ChunkFrame(artifactUpdate);
    return earlier;
  }

  #fits({ taskId, contextId, artifact: { artifactId, name } }: TaskArtifactUpdate): boolean {
    return (
      artifactId === this.#artifactId && name === this.#name && taskId === this.#taskId && contextId === this.#contextId
    );
  }
}

/** Continues an artifact by plain text, with nothing beside it. */
function isTextChunk(update: TaskArtifactUpdate): boolean {
  const { parts } = update.artifact;
  return (
    update.append === true &&
    parts.length === 1 &&
    hasOnly(UPDATE_MEMBERS, update) &&
    hasOnly(ARTIFACT_MEMBERS, update.artifact) &&
    hasOnly(PART_MEMBERS, parts[0] as Part)
  );
}

const UPDATE_MEMBERS = ["taskId", "contextId", "artifact", "append"];
const ARTIFACT_MEMBERS = ["artifactId", "parts", "name"];
const PART_MEMBERS = ["text"];

/** In this order, too, which is that of the JSON. */
function hasOnly(names: readonly string[], object: object): boolean {
  let index = 0;
  for (const name in object) if (name !== names[index++]) return false;
  return true;
}

/**
 * One numbered line of a task's log. Event and JSON are two forms of one thing; whichever is missing is made on first
 * use, so that a stream served from disk never parses and a blocking call in memory never serialises.
 */
export class LogEntry {
  readonly number: number;
  /** A caller's message that arrived with this event. It joins the history; streams do not show it. */
  readonly received: Message | undefined;
  readonly request: RequestDetails | undefined;
  /** If present, the JSON is that of the text with this around it. */
  readonly #frame: ChunkFrame | undefined;
  #event: TaskEvent | undefined;
  #json: string | undefined;

  private constructor(
    number: number,
    event: TaskEvent | undefined,
    json: string | undefined,
    received: Message | undefined,
    request: RequestDetails | undefined,
    frame: ChunkFrame | undefined,
  ) {
    this.number = number;
    this.received = received;
    this.request = request;
    this.#frame = frame;
    this.#event = event;
    this.#json = json;
  }

  /** `frame` must be that of the event. */
  static of(
    number: number,
    event: TaskEvent,
    received?: Message,
    request?: RequestDetails,
    frame?: ChunkFrame,
  ): LogEntry {
    return new LogEntry(number, event, undefined, received, request, frame);
  }

  /** `json` must be what `JSON.stringify` made of a TaskEvent: it is trusted. */
  static fromJson(number: number, json: string, received?: Message, request?: RequestDetails): LogEntry {
    return new LogEntry(number, undefined, json, received, request, undefined);
  }

  get event(): TaskEvent {
    this.#event ??= JSON.parse(this.json) as TaskEvent;
    return this.#event;
  }

  get json(): string {
    if (this.#json === undefined) {
      this.#json = JSON.stringify(this.#frame === undefined ? this.#event : chunkText(this.#event as TaskEvent));
      // One form is enough to keep. A reader that wants text passes the entry on, and short-lived objects cost nothing.
      this.#event = undefined;
    }
    return this.#frame === undefined ? this.#json : this.#frame.before + this.#json + this.#frame.after;
  }

  /** Bytes that it takes up, roughly; whichever form is there is measured. */
  get size(): number {
    const size = this.#event === undefined ? this.json.length : eventSize(this.#event);
    return this.received === undefined ? size : size + messageSize(this.received);
  }

  /** The state this entry brought the task to, if it is about state. Chunks read from disk are not parsed for it. */
  get state(): TaskState | undefined {
    if (this.#frame !== undefined) return undefined;
    if (this.#event === undefined && this.#json?.startsWith('{"artifactUpdate"') === true) return undefined;
    const event = this.event;
    if ("statusUpdate" in event) return event.statusUpdate.status.state;
    return "task" in event ? event.task.status.state : undefined;
  }
}

function chunkText(event: TaskEvent): string | undefined {
  const part = "artifactUpdate" in event ? event.artifactUpdate.artifact.parts[0] : undefined;
  return part !== undefined && "text" in part ? part.text : undefined;
}
