import type { Artifact } from "./artifact.ts";
import type { JsonObject } from "./json.ts";
import type { Message } from "./message.ts";
import type { TaskState } from "./state.ts";

export interface TaskStatus {
  readonly state: TaskState;
  readonly message?: Message;
  /** ISO 8601, UTC, milliseconds. */
  readonly timestamp?: string;
}

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly artifacts?: readonly Artifact[];
  /** Oldest first. The message of the current status is not in it; it joins when the next status replaces it. */
  readonly history?: readonly Message[];
  readonly metadata?: JsonObject;
}
