/** An agent that does what the text of a message says, and the hands with which a test holds and releases it. */

import { type AgentDefinition, defineAgent } from "../../src/core/agents/define.ts";
import type { AgentTurn } from "../../src/core/agents/turn.ts";
import type { Agent, AgentEvent, MessageDraft } from "../../src/core/engine/agent.ts";
import { isTextPart } from "../../src/core/model/message.ts";
import { createDeferred } from "../../src/core/wire/link.ts";
import { waitForAbort } from "../../src/features/writers/tck.ts";

interface Gate {
  readonly passed: ReturnType<typeof createDeferred>;
  readonly reached: ReturnType<typeof createDeferred>;
}

/** Where scripted runs wait for the test, and what is known of them. */
export class Stage {
  /** Texts of the turns that were started, in order. */
  readonly started: string[] = [];
  /** Runs that were told to stop. */
  readonly stopped: string[] = [];
  atWork = 0;
  mostAtWork = 0;
  readonly #gates = new Map<string, Gate>();

  /** Lets every run pass that waits at the gate or comes to it later. */
  open(name: string): void {
    this.#gate(name).passed.resolve();
  }

  /** Resolves when a run has come to the gate. */
  reached(name: string): Promise<void> {
    return this.#gate(name).reached.promise;
  }

  /** The run's side of the gate. */
  async pass(name: string): Promise<void> {
    const gate = this.#gate(name);
    gate.reached.resolve();
    await gate.passed.promise;
  }

  agent(definition: Partial<AgentDefinition> = {}): Agent {
    return defineAgent({
      name: "Stage",
      description: "Does what the message says.",
      ...definition,
      run: (turn) => this.#run(turn),
    });
  }

  #gate(name: string): Gate {
    let gate = this.#gates.get(name);
    if (gate === undefined) {
      gate = { passed: createDeferred(), reached: createDeferred() };
      this.#gates.set(name, gate);
    }
    return gate;
  }

  async *#run(turn: AgentTurn): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
    const script = turn.parts.find(isTextPart)?.text ?? "";
    this.started.push(script);
    this.atWork++;
    this.mostAtWork = Math.max(this.mostAtWork, this.atWork);
    try {
      for (const step of script.split(";")) {
        const [verb = "", ...words] = step.trim().split(" ");
        const rest = words.join(" ");
        if (verb === "reply") return turn.reply(rest);
        if (verb === "hold") {
          await Promise.race([this.pass(rest), waitForAbort(turn.signal)]);
          if (turn.signal.aborted) {
            this.stopped.push(script);
            return undefined;
          }
        }
        if (verb === "deaf") await this.pass(rest);
        yield* this.#events(turn, verb, rest);
      }
      return undefined;
    } finally {
      this.atWork--;
    }
  }

  *#events(turn: AgentTurn, verb: string, rest: string): Generator<AgentEvent, void, undefined> {
    if (verb === "work") yield turn.working(rest === "" ? undefined : rest);
    else if (verb === "artifact") yield turn.artifact({ name: "output", text: rest });
    else if (verb === "mirror") yield turn.artifact({ name: "mirror", parts: turn.parts });
    else if (verb === "return") {
      yield turn.artifact({ name: "returned", parts: turn.parts.filter((part) => !isTextPart(part)) });
    } else if (verb === "input") yield turn.inputRequired(rest);
    else if (verb === "auth") yield turn.authRequired(rest);
    else if (verb === "fail") yield turn.failed(rest);
    else if (verb === "reject") yield turn.rejected(rest);
    else if (verb === "throw") throw new Error(rest);
    else if (verb === "chunks" || verb === "blocks") {
      const [count = "1", size = "8"] = rest.split(" ");
      for (let at = 0; at < Number(count); at++) {
        const text = `${at},`.padEnd(verb === "blocks" ? Number(size) : 0, ".");
        // Data parts are never merged, so that each block keeps a number of its own.
        const parts = verb === "blocks" ? [{ data: text }] : [{ text }];
        yield turn.artifact({ name: "chunks", parts, append: at > 0, lastChunk: at === Number(count) - 1 });
      }
    }
  }
}
