import type { AgentEvent, MessageDraft } from "../../src/core/engine/agent.ts";
import { isTextPart, type Part, textOf } from "../../src/core/model/message.ts";
import { waitForAbort } from "../../src/features/writers/tck.ts";
import type { Gates } from "./gates.ts";

/** A message to the agent of this suite. */
export interface Said {
  readonly parts: readonly Part[];
  /** It answers a question that the task asked. */
  readonly answers: boolean;
  /** Aborted when the task is cancelled. */
  readonly signal: AbortSignal;
}

export type Behaviour = AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined>;

/**
 * What the agent does, whoever serves it. The first word of a message chooses; the rest are its arguments. Falling off
 * the end completes the task, returning a message before anything was yielded answers without one.
 */
export async function* behave({ answers, parts, signal }: Said, gates: Gates): Behaviour {
  const text = textOf(parts);
  if (answers) {
    yield artifact("answer", [{ text: `You said ${text}.` }]);
    return undefined;
  }
  const [word = "", ...rest] = text.split(" ");
  switch (word) {
    case "direct":
      return { parts: [{ text: `Directly: ${rest.join(" ")}` }] };
    case "ask":
      yield status("TASK_STATE_INPUT_REQUIRED", "Which colour?");
      return undefined;
    case "authorize":
      yield status("TASK_STATE_AUTH_REQUIRED", "Please log in.");
      return undefined;
    case "fail":
      yield status("TASK_STATE_FAILED", "It broke.");
      return undefined;
    case "reject":
      yield status("TASK_STATE_REJECTED", "Not that.");
      return undefined;
    case "parts":
      yield artifact(
        "parts",
        parts.filter((part) => !isTextPart(part)),
      );
      return undefined;
    case "slow":
      yield status("TASK_STATE_WORKING", "This takes long.");
      await waitForAbort(signal);
      return undefined;
    case "hold":
      yield status("TASK_STATE_WORKING", "Holding.");
      await gates.passed(rest[0] ?? "", signal);
      yield artifact("held", [{ text: "released" }]);
      return undefined;
    case "chunks":
      yield status("TASK_STATE_WORKING", "Writing.");
      yield* chunks(Number(rest[0]), () => gates.passed(rest[1] ?? "", signal));
      return undefined;
    default:
      yield status("TASK_STATE_WORKING", "Thinking.");
      yield artifact("echo", [{ text: rest.join(" ") }]);
      return undefined;
  }
}

/** After the first piece it waits, so that a reader who gets that piece is known to read while the agent writes. */
async function* chunks(count: number, gate: () => Promise<void>): AsyncGenerator<AgentEvent, void, undefined> {
  for (let piece = 1; piece <= count; piece++) {
    const { artifact: made } = artifact("pieces", [{ text: `${piece};` }]);
    yield { artifact: made, append: piece > 1, lastChunk: piece === count };
    if (piece === 1) await gate();
  }
}

function artifact(name: string, parts: readonly Part[]) {
  return { artifact: { artifactId: name, name, parts } };
}

function status(state: Extract<AgentEvent, { status: unknown }>["status"], text: string): AgentEvent {
  return { status: state, message: { parts: [{ text }] } };
}
