import { hash } from "node:crypto";
import type { AgentDirectory } from "../../../core/agents/directory.ts";
import type { AgentEvent, Turn, TurnMemory } from "../../../core/engine/agent.ts";
import type { JsonObject, JsonValue } from "../../../core/model/json.ts";
import type { Message } from "../../../core/model/message.ts";
import type { Clock } from "../../../core/model/ports.ts";
import type { StepProgress } from "./progress.ts";

/** Writes of one run that nothing waits for. */
const MAX_LATER = 16;

/** Parts and artifacts are JSON, but the compiler does not regard interfaces as such. */
export type Stored<T> = T & JsonObject;

interface RunMemory extends Omit<TurnMemory, "once"> {
  /** For what could be found out again: resolves before it is written, unless many such writes are under way. */
  setLater(key: string, value: JsonValue): Promise<void>;
  /** Resolves when everything is written. Rejects if something could not be. */
  flush(): Promise<void>;
}

/** A question of a step's agent. */
export interface Question {
  readonly status: "TASK_STATE_INPUT_REQUIRED" | "TASK_STATE_AUTH_REQUIRED";
  readonly path: string;
  readonly message: Message | undefined;
  readonly progress: StepProgress;
}

/** What the steps of one run share. */
export interface RunContext {
  readonly turn: Turn;
  readonly directory: AgentDirectory;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** Of this run: a task may have several, one after another. */
  readonly memory: RunMemory;
  /** An earlier turn or process may have begun any step. */
  readonly isResumed: boolean;
  /** The step whose question the message of the turn answers. */
  readonly answers: string | undefined;
  /** The id of the task of an attempt: the same after a crash. */
  childId(path: string, attempt: number): string;
  /** Resolves when the event is in the log. */
  emit(event: AgentEvent): Promise<void>;
  /** Emits a status message about a step. */
  report(progress: StepProgress, detail?: string): Promise<void>;
  /** The step waits for someone to authorise it elsewhere, which a message of the caller may be about, or no longer does. */
  waitForAuth(path: string, question: Question | undefined): void;
  /** Ends the turn with the question. */
  ask(question: Question): void;
  /** A step could not be cancelled. */
  addRefusal(path: string, reason: string): void;
  /** Counts what the run keeps. False: it keeps too much. */
  keep(size: number): boolean;
}

/** Chosen ids name the tasks of all agents of a server, and may not be long. */
export function childIdOf(taskId: string, run: string, path: string, attempt: number): string {
  return hash("sha256", JSON.stringify([taskId, run, path, attempt]), "hex").slice(0, 32);
}

/** Of one run: a task may have several, one after another. */
export function createRunMemory(memory: TurnMemory, run: string): RunMemory {
  const later = new Set<Promise<void>>();
  let failure: unknown;
  return {
    get: (key) => memory.get(run + key),
    set: (key, value) => memory.set(run + key, value),
    delete: (key) => memory.delete(run + key),
    async setLater(key, value) {
      const written = memory.set(run + key, value).catch((error: unknown) => {
        failure ??= error;
      });
      later.add(written);
      void written.finally(() => later.delete(written));
      if (later.size > MAX_LATER) await written;
    },
    async flush() {
      await Promise.all(later);
      if (failure !== undefined) throw failure;
    },
  };
}
