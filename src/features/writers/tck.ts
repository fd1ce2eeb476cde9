import { setTimeout as after } from "node:timers/promises";
import { defineAgent } from "../../core/agents/define.ts";
import type { AgentTurn, ArtifactEvent } from "../../core/agents/turn.ts";
import { data, file } from "../../core/client/parts.ts";
import type { Agent, AgentEvent } from "../../core/engine/agent.ts";
import type { AgentExtension } from "../../core/model/card.ts";
import { isTextPart, type Message } from "../../core/model/message.ts";

export interface TckOptions {
  /** Time unit of the delayed behaviours. Default: TCK_STREAMING_TIMEOUT seconds, or two seconds. */
  readonly streamingTimeoutMs?: number;
  readonly streaming?: boolean;
  /** URI of an extension; callers that do not activate it are rejected. */
  readonly requiredExtension?: string;
}

/** Behaviours that the public conformance kits expect, by a prefix of the message's id or of its first text. */
type Behaviour = (turn: AgentTurn, unit: number) => AsyncGenerator<AgentEvent, void, undefined> | string;

const GREETING = "Hello from TCK";
const OUTPUT_FILE = { filename: "output.txt", mediaType: "text/plain" };

const complete: Behaviour = async function* (turn) {
  yield turn.completed(GREETING);
};

const produce = (event: (turn: AgentTurn) => ArtifactEvent): Behaviour =>
  async function* (turn) {
    yield event(turn);
    yield turn.completed();
  };

const workAndProduce = (...events: readonly ((turn: AgentTurn) => ArtifactEvent)[]): Behaviour =>
  async function* (turn) {
    yield turn.working();
    for (const event of events) yield event(turn);
    yield turn.completed();
  };

const workFor = (units: number, end: (turn: AgentTurn) => readonly AgentEvent[]): Behaviour =>
  async function* (turn, unit) {
    yield turn.working();
    if (await sleepUnlessAborted(units * unit, turn.signal)) yield* end(turn);
  };

const textArtifact = (text: string) => (turn: AgentTurn) => turn.artifact({ name: "output", text });
const fileArtifact = (turn: AgentTurn) =>
  turn.artifact({ name: "output", parts: [file({ bytes: Buffer.from("Generated file content"), ...OUTPUT_FILE })] });
const firstChunk = (turn: AgentTurn) => turn.artifact({ name: "output", text: "chunk-1 " });
const secondChunk = (turn: AgentTurn) =>
  turn.artifact({ name: "output", text: "chunk-2", append: true, lastChunk: true });

const askForInput: Behaviour = async function* (turn) {
  yield turn.inputRequired("Please say more.");
};

/** The 0.3 kit sends follow-ups to these tasks and cancels them, so they must not end by themselves. */
const stayOpen = workFor(1, (turn) => [turn.inputRequired("Please say more.")]);

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  "tck-complete-task": complete,
  "tck-delayed-complete": workFor(1, (turn) => [turn.completed(GREETING)]),
  "tck-artifact-text": produce(textArtifact("Generated text content")),
  "tck-artifact-file": produce(fileArtifact),
  "tck-artifact-file-url": produce((turn) =>
    turn.artifact({ name: "output", parts: [file({ url: "https://example.com/output.txt", ...OUTPUT_FILE })] }),
  ),
  "tck-artifact-data": produce((turn) => turn.artifact({ name: "output", parts: [data({ key: "value", count: 42 })] })),
  "tck-message-response": () => "Direct message response",
  "tck-input-required": askForInput,
  "tck-auth-required": async function* (turn) {
    yield turn.authRequired("Please authenticate.");
  },
  "tck-reject-task": async function* (turn) {
    yield turn.rejected("rejected");
  },
  "tck-task-failure": async function* (turn) {
    yield turn.failed("The task failed, as asked.");
  },
  "tck-multi-turn": async function* (turn) {
    if (turn.text.trim().toLowerCase() === "done") yield turn.completed("Done.");
    else yield turn.inputRequired('Say more, or "done".');
  },
  "tck-cancel": async function* (turn) {
    yield turn.working();
    await waitForAbort(turn.signal);
  },
  "tck-long-running": workFor(1, (turn) => [textArtifact("Long-running output")(turn), turn.completed()]),
  "tck-stream-001": workAndProduce(textArtifact("Stream hello from TCK")),
  "tck-stream-002": complete,
  "tck-stream-003": workAndProduce(textArtifact("Stream task lifecycle")),
  "tck-stream-ordering-001": workAndProduce(textArtifact("Ordered output")),
  "tck-stream-basic": workAndProduce(textArtifact("Streamed text content")),
  "tck-stream-chunked": workAndProduce(firstChunk, secondChunk),
  "tck-stream-artifact-text": workAndProduce(textArtifact("Streamed text content")),
  "tck-stream-artifact-file": workAndProduce(fileArtifact),
  "tck-stream-artifact-chunked": workAndProduce(firstChunk, secondChunk),
  "test-resubscribe-message-id": workFor(2, (turn) => [turn.completed(GREETING)]),
  "cancel-test": stayOpen,
  "test-cancel-message-id": stayOpen,
  "test-state-message-id": stayOpen,
  "test-followup-message-id": stayOpen,
  "test-update-message-id": stayOpen,
  "test-history-": stayOpen,
  "test-simple-task-message-id": stayOpen,
  "test-message-id-": stayOpen,
  "text-message-id-": stayOpen,
  "mapping-test-message-id-": stayOpen,
  "test-resilience-message-id-": stayOpen,
};

/** Longest first: `tck-artifact-file-url` before `tck-artifact-file`. */
const PREFIXES = Object.keys(BEHAVIOURS).sort((a, b) => b.length - a.length);

/** After these, a message without a behaviour continues the conversation. */
const LASTING: ReadonlySet<Behaviour | undefined> = new Set([askForInput, stayOpen, BEHAVIOURS["tck-multi-turn"]]);

/** The agent with which the public conformance kits test a server. */
export function createTckAgent(options: TckOptions = {}): Agent {
  const unit = options.streamingTimeoutMs ?? streamingTimeoutFrom(process.env.TCK_STREAMING_TIMEOUT);
  return defineAgent({
    name: "Conformance",
    description: "Behaves as the public A2A conformance kits ask by message id or first text.",
    skills: [
      { id: "tck", name: "Conformance", description: "Does what the prefix of the message says.", tags: ["test"] },
    ],
    streaming: options.streaming ?? true,
    extensions: options.requiredExtension === undefined ? [] : [requiredBy(options.requiredExtension)],
    extended: { description: "The conformance agent, as authenticated callers see it." },
    onCrash: "resume",
    run: (turn) => behaviourOf(turn)(turn, unit),
  });
}

function requiredBy(uri: string): AgentExtension {
  return { uri, description: "Must be activated by every caller.", required: true };
}

function behaviourOf(turn: AgentTurn): Behaviour {
  return behaviourOfMessage(turn.message) ?? behaviourOfHistory(turn.history) ?? complete;
}

function behaviourOfMessage(message: Message): Behaviour | undefined {
  const text = message.parts.find(isTextPart)?.text.trimStart() ?? "";
  const prefix =
    PREFIXES.find((candidate) => message.messageId.startsWith(candidate)) ??
    PREFIXES.find((candidate) => text.startsWith(candidate));
  return prefix === undefined ? undefined : BEHAVIOURS[prefix];
}

function behaviourOfHistory(history: readonly Message[]): Behaviour | undefined {
  for (const message of history.toReversed()) {
    const behaviour = message.role === "ROLE_USER" ? behaviourOfMessage(message) : undefined;
    if (behaviour !== undefined) return LASTING.has(behaviour) ? behaviour : undefined;
  }
  return undefined;
}

function streamingTimeoutFrom(seconds: string | undefined): number {
  const value = Number.parseFloat(seconds ?? "");
  return Number.isFinite(value) && value >= 0 ? value * 1_000 : 2_000;
}

/** Waits until the time has passed or the signal is aborted; true if the time passed. */
async function sleepUnlessAborted(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  try {
    await after(milliseconds, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** Resolves when the signal is aborted. */
export function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
