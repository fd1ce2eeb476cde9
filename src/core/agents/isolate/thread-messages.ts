/** Messages between an isolated agent's thread and the serving thread. Values of agents are sent as JSON, as stored. */
import type { Agent, DroppedTask, Turn } from "../../engine/agent.ts";
import type { Caller } from "../../model/caller.ts";
import type { ErrorCode } from "../../model/errors.ts";

export interface ThreadData {
  /** Path of the agent's module. */
  readonly module: string;
  /** One counter, which the thread increments while its event loop is responsive. */
  readonly beats: SharedArrayBuffer;
}

export const BEAT_MS = 250;

export type TurnData = Omit<Turn, "conversation" | "memory" | "signal" | "unyielded">;

export interface AgentDescription extends Pick<Agent, "onCrash" | "concurrency" | "timeoutMs"> {
  /** Without functions. */
  readonly profile: Agent["profile"];
  readonly asksForExtended: boolean;
  readonly receivesDropped: boolean;
}

/** `run` numbers the runs of a thread: late messages of one must not affect the next, which may have another caller. */
export type Request =
  | { readonly what: "next" | "return"; readonly run: number }
  | { readonly what: "extended"; readonly caller: Caller }
  | { readonly what: "dropped"; readonly run: number; readonly task: Omit<DroppedTask, "memory"> };

export type ToThread =
  | { readonly kind: "run"; readonly run: number; readonly turn: TurnData }
  | { readonly kind: "abort"; readonly run: number; readonly code: ErrorCode | undefined; readonly message: string }
  | { readonly kind: "request"; readonly id: number; readonly request: Request }
  | { readonly kind: "remembered"; readonly id: number; readonly json?: string | undefined; readonly error?: string };

export interface MemoryRequest {
  readonly id: number;
  readonly run: number;
  /** Whose values. */
  readonly of: "task" | "conversation";
  /** `recall` reads what `once` stored. */
  readonly action: "get" | "set" | "delete" | "recall" | "append";
  readonly key: string;
  readonly json?: string | undefined;
}

export interface Answer {
  readonly done: boolean;
  readonly json: string | undefined;
  /** About events that were made and not yielded, at the end of a turn. */
  readonly warnings?: readonly string[];
}

export type FromThread =
  | { readonly kind: "ready"; readonly agent: AgentDescription; readonly thread: string }
  | { readonly kind: "refused"; readonly message: string }
  | ({ readonly kind: "answer"; readonly id: number } & Answer)
  | { readonly kind: "threw"; readonly id: number; readonly error: ErrorText }
  | ({ readonly kind: "memory" } & MemoryRequest)
  | { readonly kind: "rejection"; readonly error: ErrorText };

interface ErrorText {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
}

export function toErrorText(error: unknown): ErrorText {
  if (error instanceof Error) return { name: error.name, message: error.message, stack: error.stack };
  return { name: "Error", message: String(error), stack: undefined };
}

export function fromErrorText({ name, message, stack }: ErrorText): Error {
  const error = new Error(message);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return error;
}
