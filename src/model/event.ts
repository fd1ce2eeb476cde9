import type { JsonObject, JsonValue } from "./json.ts";
import type { Message } from "./message.ts";
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

/** What is kept with an event and not shown: what came beside a message, for the run that answers it and its resumption. */
export interface RequestDetails {
  readonly metadata?: JsonObject;
  readonly acceptedOutputModes?: readonly string[];
  readonly authenticated?: boolean;
  /** How far the run had come with this event. */
  readonly checkpoint?: JsonValue;
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
  #event: TaskEvent | undefined;
  #json: string | undefined;

  private constructor(
    number: number,
    event: TaskEvent | undefined,
    json: string | undefined,
    received: Message | undefined,
    request: RequestDetails | undefined,
  ) {
    this.number = number;
    this.#event = event;
    this.#json = json;
    this.received = received;
    this.request = request;
  }

  static of(number: number, event: TaskEvent, received?: Message, request?: RequestDetails): LogEntry {
    return new LogEntry(number, event, undefined, received, request);
  }

  /** `json` must be what `JSON.stringify` made of a TaskEvent: it is trusted. */
  static fromJson(number: number, json: string, received?: Message, request?: RequestDetails): LogEntry {
    return new LogEntry(number, undefined, json, received, request);
  }

  get event(): TaskEvent {
    this.#event ??= JSON.parse(this.#json as string) as TaskEvent;
    return this.#event;
  }

  get json(): string {
    if (this.#json === undefined) {
      this.#json = JSON.stringify(this.#event);
      // One form is enough to keep. A reader that wants text passes the entry on, and short-lived objects cost nothing.
      this.#event = undefined;
    }
    return this.#json;
  }

  /** The state this entry brought the task to, if it is about state. Chunks read from disk are not parsed for it. */
  get state(): TaskState | undefined {
    if (this.#event === undefined && this.#json?.startsWith('{"artifactUpdate"') === true) return undefined;
    const event = this.event;
    if ("statusUpdate" in event) return event.statusUpdate.status.state;
    return "task" in event ? event.task.status.state : undefined;
  }
}
