import type { Signal } from "../model/abort.ts";
import type { Caller } from "../model/caller.ts";
import type { AgentProfile } from "../model/card.ts";
import type { Hops } from "../model/extensions.ts";
import type { JsonObject, JsonValue } from "../model/json.ts";
import type { Message, Part } from "../model/message.ts";
import type { Task, TaskState } from "../model/task.ts";

/** What a message of an agent says; ids, role and context are the engine's to fill in. */
export interface MessageDraft {
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

export type AgentState = Exclude<TaskState, "TASK_STATE_SUBMITTED" | "TASK_STATE_UNSPECIFIED">;

export interface ArtifactDraft {
  /** Without one, the engine gives the artifact an id. The same id again replaces or continues the artifact. */
  readonly artifactId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

/** What an agent's run yields. */
export type AgentEvent = Checkpointed &
  (
    | {
        readonly status: AgentState;
        readonly message?: MessageDraft | undefined;
        readonly metadata?: JsonObject | undefined;
      }
    | {
        readonly artifact: ArtifactDraft;
        /**
         * Continues the artifact of this id. When a run is repeated after a crash, the first chunk continues what is there
         * only if the run knows how far it had come: it has a checkpoint, or has read with `memory.get` what it stored.
         */
        readonly append?: boolean | undefined;
        readonly lastChunk?: boolean | undefined;
        readonly metadata?: JsonObject | undefined;
      }
  );

interface Checkpointed {
  /**
   * Kept with the event in one write, and never shown: how far the run has come with it. A run that is resumed after a
   * crash finds the newest as `turn.checkpoint`, and continues with what follows the event; artifacts continue too.
   */
  readonly checkpoint?: JsonValue | undefined;
}

/** Values that survive a crash of the process and are there again when the run is resumed. */
export interface TurnMemory {
  get<T extends JsonValue>(key: string): Promise<T | undefined>;
  set(key: string, value: JsonValue): Promise<void>;
  delete(key: string): Promise<void>;
  /** Do something once per task: the stored result is returned when the run is repeated. */
  once<T extends JsonValue>(key: string, compute: () => Promise<T> | T): Promise<T>;
}

/**
 * Values of a conversation: of all tasks that one caller has with the agent in one context. They outlast the tasks, for 30
 * days after the last change; 256 KiB of JSON at most.
 */
export interface ConversationMemory {
  /** The value of a key; of one that was appended to, the list of all items. */
  get<T extends JsonValue>(key: string): Promise<T | undefined>;
  /** Replaces a value; undefined removes it. */
  set(key: string, value: JsonValue | undefined): Promise<void>;
  /**
   * Adds an item to a list. Tasks of a conversation that run at the same time lose nothing of each other, and a run that
   * is repeated after a crash adds nothing twice. The oldest items are dropped when there is no room for more.
   */
  append(key: string, item: JsonValue): Promise<void>;
}

/** Drafts of events that were made and not yielded so far, each with a warning to log; undefined if it was logged before. */
export type UnyieldedEvents = Map<object, () => string | undefined>;

/** One message to an agent, with all it needs to answer. */
export interface Turn {
  readonly message: Message;
  /** What was said in this task before the message, oldest first; the newest part of it when there is much. */
  readonly history: readonly Message[];
  readonly task: { readonly id: string; readonly contextId: string };
  readonly caller: Caller;
  /**
   * Aborted when the task is cancelled, times out, or this process lost the right to run it. Only in the last case, in
   * which the run continues elsewhere or later, the reason is a ProtocolError with the code UNAVAILABLE.
   */
  readonly signal: AbortSignal;
  /** The same, cheaper to make and to listen to: for agents that only pass a message on. Default: `signal`. */
  readonly cancellation?: Signal;
  /** Aborted when another message for the task waits for this turn to end. */
  readonly followUp?: AbortSignal;
  readonly memory: TurnMemory;
  /** Of the conversation that the task belongs to. */
  readonly conversation?: ConversationMemory;
  /** 1, and more after a crash. */
  readonly attempt: number;
  /** Of the newest event that an earlier attempt wrote with one; undefined where none did. */
  readonly checkpoint?: JsonValue | undefined;
  /**
   * The task as earlier attempts left it. A run that asks for it continues from there: chunks that it appends are added
   * to the artifacts that exist.
   */
  stored?(): Task;
  readonly acceptedOutputModes: readonly string[];
  /** Metadata of the request, not of the message. */
  readonly metadata: JsonObject | undefined;
  /** Where what makes events for the agent notes them, so that a forgotten `yield` is found. */
  readonly unyielded?: UnyieldedEvents;
  /** Which agents the request came through, this one included. Passed on with calls made for it: see `CallOptions`. */
  readonly hops: Hops;
}

/** Events that happened together may be yielded together. */
export type AgentRun = AsyncIterator<
  AgentEvent | readonly AgentEvent[],
  MessageDraft | undefined | ReturnType<() => void>
>;

/**
 * Everything that can be served. Falling off the end completes the task; returning a message before anything was
 * yielded answers without a task; throwing fails the task.
 */
export interface Agent {
  readonly profile: AgentProfile;
  /**
   * What becomes of a task whose process died. `resume`: the run is started again with history and memory; the agent
   * declares by it that repeating a run does no harm.
   */
  readonly onCrash: "fail" | "resume";
  /** Why a task is failed because of `onCrash`. Default: that its process stopped. */
  readonly crashText?: string;
  /** Runs at the same time, at most. */
  readonly concurrency: number;
  /** Longest time of one turn in milliseconds. */
  readonly timeoutMs: number | undefined;
  run(turn: Turn): AgentRun;
  /**
   * False while the agent can run only in another process that shares the store, e.g. the one it is connected to: its
   * tasks are left to that one. Default: it can run here.
   */
  isAvailable?(): boolean;
  /** A task that no run works on was cancelled, so that only this can release what the agent keeps for it. */
  dropped?(task: DroppedTask): Promise<void>;
}

export interface DroppedTask {
  readonly id: string;
  readonly contextId: string;
  /** Whose task it is. */
  readonly caller: Caller;
  readonly memory: Pick<TurnMemory, "get">;
}
