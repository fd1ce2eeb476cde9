import type { ArtifactChange } from "../../../core/agents/collector.ts";
import type { AgentEvent } from "../../../core/engine/agent.ts";
import { isPlainText, type Part } from "../../../core/model/message.ts";
import { partsOf, type StepOutcome } from "./results.ts";

/**
 * The artifacts of a step as artifacts of the run: the first has the name of the step, others have their own name after
 * it. They are shown once, as they come; what is shown again after a crash replaces what was shown before.
 */
export class ArtifactDisplay {
  readonly #name: string;
  readonly #names = new Map<string, string>();

  constructor(name: string) {
    this.#name = name;
  }

  show({ append, artifact, lastChunk }: ArtifactChange): AgentEvent[] {
    const { artifactId, name, parts, ...rest } = artifact;
    if (parts.length === 0) return [];
    let shown = this.#names.get(artifactId);
    const isNew = shown === undefined;
    if (shown === undefined) {
      shown = this.#names.size === 0 ? this.#name : `${this.#name}/${artifactId}`;
      this.#names.set(artifactId, shown);
    }
    const title = shown === this.#name ? shown : `${this.#name}/${name ?? artifactId}`;
    return [
      {
        artifact: { ...rest, artifactId: shown, name: title, parts },
        append: (append === true && !isNew) || undefined,
        lastChunk,
      },
    ];
  }

  /** The message of an agent that made no artifacts. */
  showMessage(outcome: StepOutcome): AgentEvent[] {
    const { message = [] } = outcome;
    return this.#names.size > 0 || message.length === 0 ? [] : [artifactEvent(this.#name, message, false)];
  }
}

/** The artifact of a `foreach`: what the items return, in their order, each as soon as those before it have ended. */
export class ItemDisplay {
  readonly #name: string;
  readonly #ended = new Map<number, StepOutcome>();
  #next = 0;
  #last: Part | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  show(index: number, outcome: StepOutcome): AgentEvent[] {
    this.#ended.set(index, outcome);
    const events: AgentEvent[] = [];
    for (;;) {
      const ended = this.#ended.get(this.#next);
      if (ended === undefined) return events;
      this.#ended.delete(this.#next++);
      const parts = partsOf(ended);
      if (parts.length === 0) continue;
      events.push(artifactEvent(this.#name, this.#separate(parts), this.#last !== undefined));
      this.#last = parts.at(-1);
    }
  }

  /** Text that follows text becomes one part with it: without a new line, items would run into each other. */
  #separate(parts: readonly Part[]): readonly Part[] {
    const [first, ...rest] = parts;
    if (first === undefined || this.#last === undefined || !isPlainText(first) || !isPlainText(this.#last))
      return parts;
    return [{ text: `\n${first.text}` }, ...rest];
  }
}

function artifactEvent(name: string, parts: readonly Part[], append: boolean): AgentEvent {
  return { artifact: { artifactId: name, name, parts }, append: append || undefined };
}
