import type { Artifact } from "../model/artifact.ts";
import type { StreamEvent } from "../model/event.ts";
import type { Message } from "../model/message.ts";
import { isPlainText, type Part } from "../model/part.ts";
import type { Task } from "../model/task.ts";

/**
 * A task as a stream shows it. Unlike the fold of a log it refuses nothing: agents of any make are on the other side,
 * and what they send is to be shown.
 */
export class TaskView {
  #task: Task | undefined;
  #message: Message | undefined;
  readonly #artifacts = new Map<string, { artifact: Artifact; parts: Part[] }>();

  apply(event: StreamEvent): void {
    if ("message" in event) this.#message = event.message;
    else if ("task" in event) this.#begin(event.task);
    else if ("statusUpdate" in event) {
      const { contextId, status, taskId } = event.statusUpdate;
      this.#task = { ...(this.#task ?? { id: taskId, contextId }), status };
    } else {
      const { append, artifact, contextId, taskId } = event.artifactUpdate;
      this.#task ??= { id: taskId, contextId, status: { state: "TASK_STATE_WORKING" } };
      const known = append === true ? this.#artifacts.get(artifact.artifactId) : undefined;
      if (known === undefined) this.#artifacts.set(artifact.artifactId, { artifact, parts: [...artifact.parts] });
      else for (const part of artifact.parts) addPart(known.parts, part);
    }
  }

  get message(): Message | undefined {
    return this.#message;
  }

  get taskId(): string | undefined {
    return this.#task?.id;
  }

  get state(): Task["status"]["state"] | undefined {
    return this.#task?.status.state;
  }

  toTask(): Task | undefined {
    if (this.#task === undefined) return undefined;
    const artifacts = [...this.#artifacts.values()].map(({ artifact, parts }) => ({ ...artifact, parts: [...parts] }));
    return artifacts.length === 0 ? this.#task : { ...this.#task, artifacts };
  }

  #begin(task: Task): void {
    this.#task = task;
    this.#artifacts.clear();
    for (const artifact of task.artifacts ?? []) {
      this.#artifacts.set(artifact.artifactId, { artifact, parts: [...artifact.parts] });
    }
  }
}

function addPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  if (last !== undefined && isPlainText(last) && isPlainText(part))
    parts[parts.length - 1] = { text: last.text + part.text };
  else parts.push(part);
}
