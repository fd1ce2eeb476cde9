import { textOf } from "../../model/message.ts";
import type { Agent, AgentEvent, AgentRun, AgentState, MessageDraft, Turn } from "../agent.ts";

/** An agent that does what the test says. */
export function agentOf(run: (turn: Turn) => AgentRun, more: Partial<Agent> = {}): Agent {
  return {
    profile: {
      name: "Test",
      description: "Does as told.",
      version: "1",
      skills: [],
      inputModes: [],
      outputModes: [],
      streaming: true,
      extensions: [],
    },
    onCrash: "fail",
    concurrency: Number.POSITIVE_INFINITY,
    timeoutMs: undefined,
    run,
    ...more,
  };
}

/** Says something back, as a task. */
export const echo = (more: Partial<Agent> = {}): Agent =>
  agentOf(async function* (turn) {
    yield status("TASK_STATE_WORKING");
    yield chunk("echo", textOf(turn.message.parts), false);
  }, more);

/** Answers without a task. */
export const messageAgent = (more: Partial<Agent> = {}): Agent =>
  agentOf(
    // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
    async function* (turn) {
      return textDraft(`You said ${textOf(turn.message.parts)}.`);
    },
    more,
  );

export function status(state: AgentState, text?: string): AgentEvent {
  return text === undefined ? { status: state } : { status: state, message: textDraft(text) };
}

export function chunk(artifactId: string, text: string, append = true): AgentEvent {
  return { artifact: { artifactId, parts: [{ text }] }, append };
}

export function textDraft(text: string): MessageDraft {
  return { parts: [{ text }] };
}

export const inputText = (turn: Turn): string => textOf(turn.message.parts);

/** A point that a run passes when the test opens it, and that tells when it was reached. */
export interface Gate {
  readonly reached: Promise<void>;
  pass(): Promise<void>;
  open(): void;
}

export function createGate(): Gate {
  let reach = (): void => {};
  let open = (): void => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    reached,
    pass() {
      reach();
      return opened;
    },
    open,
  };
}

/** Resolves when the turn is aborted. */
export function aborted(turn: Turn): Promise<void> {
  return new Promise((resolve) => {
    if (turn.signal.aborted) resolve();
    else turn.signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
