import type { Agent, AgentEvent, MessageDraft, Turn, TurnMemory } from "../../engine/agent.ts";
import { type Hops, NO_HOPS } from "../../model/extensions.ts";
import type { JsonValue } from "../../model/json.ts";
import type { Message, Part } from "../../model/message.ts";

interface TurnOverrides {
  readonly text?: string;
  readonly parts?: readonly Part[];
  readonly messageId?: string;
  readonly history?: readonly Message[];
  readonly signal?: AbortSignal;
  readonly hops?: Hops;
}

/** A turn like the engine's, for tests of agents without an engine. */
export function turnOf(overrides: TurnOverrides = {}): Turn {
  return {
    message: {
      messageId: overrides.messageId ?? "message-1",
      contextId: "context-1",
      taskId: "task-1",
      role: "ROLE_USER",
      parts: overrides.parts ?? [{ text: overrides.text ?? "" }],
    },
    history: overrides.history ?? [],
    task: { id: "task-1", contextId: "context-1" },
    caller: { owner: "anonymous", authenticated: false },
    signal: overrides.signal ?? new AbortController().signal,
    memory: new MapMemory(),
    attempt: 1,
    acceptedOutputModes: [],
    metadata: undefined,
    hops: overrides.hops ?? NO_HOPS,
  };
}

interface Outcome {
  readonly events: readonly AgentEvent[];
  readonly answer: MessageDraft | undefined;
}

/** Runs an agent to completion. */
export async function runToEnd(agent: Agent, overrides: TurnOverrides = {}): Promise<Outcome> {
  const run = agent.run(turnOf(overrides));
  const events: AgentEvent[] = [];
  for (;;) {
    const step = await run.next();
    if (step.done === true) return { events, answer: step.value ?? undefined };
    events.push(...[step.value].flat());
  }
}

/** The concatenated text of all chunks of an artifact. */
export function textOfArtifact(events: readonly AgentEvent[], artifactId: string): string {
  let text = "";
  for (const event of events) {
    if (!("artifact" in event) || event.artifact.artifactId !== artifactId) continue;
    if (event.append !== true) text = "";
    for (const part of event.artifact.parts) if ("text" in part) text += part.text;
  }
  return text;
}

/** The states of the status events, without their common prefix. */
export function statesOf(events: readonly AgentEvent[]): readonly string[] {
  return events.flatMap((event) => ("status" in event ? [event.status.replace("TASK_STATE_", "")] : []));
}

class MapMemory implements TurnMemory {
  readonly #values = new Map<string, JsonValue>();

  async get<T extends JsonValue>(key: string): Promise<T | undefined> {
    return this.#values.get(key) as T | undefined;
  }

  async set(key: string, value: JsonValue): Promise<void> {
    this.#values.set(key, value);
  }

  async delete(key: string): Promise<void> {
    this.#values.delete(key);
  }

  async once<T extends JsonValue>(key: string, compute: () => Promise<T> | T): Promise<T> {
    const known = this.#values.get(key);
    if (known !== undefined) return known as T;
    const value = await compute();
    this.#values.set(key, value);
    return value;
  }
}
