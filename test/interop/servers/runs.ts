import { randomUUID } from "node:crypto";
import type { MessageDraft } from "../../../src/core/engine/agent.ts";
import type { StreamEvent } from "../../../src/core/model/event.ts";
import type { Message } from "../../../src/core/model/message.ts";
import { isInterrupted, isTerminal, type Task, type TaskState, type TaskStatus } from "../../../src/core/model/task.ts";
import { behave } from "../behaviour.ts";
import type { Gates } from "../gates.ts";

export interface RunRequest {
  readonly taskId: string;
  readonly contextId: string;
  readonly message: Message;
  /** The task as it stands, if the message continues one. */
  readonly task: Task | undefined;
}

export type Publish = (event: StreamEvent) => void;

/** Runs the agent of this suite for servers that want events published: in the model's words, for them to translate. */
export class Runs {
  readonly #gates: Gates;
  readonly #running = new Map<string, { readonly contextId: string; readonly abort: AbortController }>();

  constructor(gates: Gates) {
    this.#gates = gates;
  }

  async execute(request: RunRequest, publish: Publish): Promise<void> {
    const { contextId, message, task, taskId } = request;
    const abort = new AbortController();
    this.#running.set(taskId, { contextId, abort });
    const { signal } = abort;
    const steps = behave({ parts: message.parts, answers: task !== undefined, signal }, this.#gates);
    let state: TaskState = "TASK_STATE_SUBMITTED";
    let begun = false;
    for (;;) {
      const step = await steps.next().catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (step === undefined || signal.aborted) return;
      if (step.done === true && step.value !== undefined) {
        publish({ message: said(step.value, request) });
        return;
      }
      if (!begun) publish({ task: task ?? { id: taskId, contextId, status: now(state), history: [message] } });
      begun = true;
      if (step.done === true) break;
      const event = step.value;
      if ("status" in event) {
        state = event.status;
        const spoken = event.message === undefined ? {} : { message: said(event.message, request) };
        publish({ statusUpdate: { taskId, contextId, status: { ...now(state), ...spoken } } });
      } else {
        const { append = false, artifact, lastChunk = false } = event;
        const { artifactId = randomUUID() } = artifact;
        publish({ artifactUpdate: { taskId, contextId, artifact: { ...artifact, artifactId }, append, lastChunk } });
      }
    }
    if (isTerminal(state) || isInterrupted(state)) return;
    publish({ statusUpdate: { taskId, contextId, status: now("TASK_STATE_COMPLETED") } });
  }

  cancel(taskId: string, publish: Publish): void {
    const run = this.#running.get(taskId);
    if (run === undefined) return;
    run.abort.abort();
    publish({ statusUpdate: { taskId, contextId: run.contextId, status: now("TASK_STATE_CANCELED") } });
  }
}

function said(draft: MessageDraft, { contextId, taskId }: RunRequest): Message {
  return { messageId: randomUUID(), role: "ROLE_AGENT", contextId, taskId, parts: draft.parts };
}

function now(state: TaskState): TaskStatus {
  return { state, timestamp: new Date().toISOString() };
}
