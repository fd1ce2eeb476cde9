/** What an isolated agent's thread and the thread that serves send each other. Values of agents travel as JSON, as they are stored. */
import type { Agent, DroppedTask, Turn } from "../../engine/agent.ts";
import type { Caller } from "../../model/caller.ts";
import type { ErrorCode } from "../../model/errors.ts";

export interface ThreadData {
  /** Module of the agent. */
  readonly module: string;
  /** One number, which the thread counts up while its event loop turns. */
  readonly beats: SharedArrayBuffer;
}

export const BEAT_MS = 250;

export type TurnData = Omit<Turn, "memory" | "signal">;

export interface AgentDescription extends Pick<Agent, "onCrash" | "concurrency" | "timeoutMs"> {
  /** Without what is a function. */
  readonly profile: Agent["profile"];
  readonly asksForExtended: boolean;
  readonly receivesDropped: boolean;
}

/** `run` numbers the runs of a thread: what comes late from one must not touch the next, which may be someone else's. */
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
  readonly action: "get" | "set" | "delete";
  readonly key: string;
  readonly json?: string | undefined;
}

export interface Answer {
  readonly done: boolean;
  readonly json: string | undefined;
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
