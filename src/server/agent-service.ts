import type { AgentService } from "../dialects/contract.ts";
import type { Engine } from "../engine/engine.ts";
import type { Caller } from "../model/caller.ts";
import type { AgentCard, AgentInterface, AgentProfile } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Call, Operation, OutcomeOf } from "../model/operation.ts";
import type { Log } from "../model/ports.ts";
import { activatedOf, toAgentCard, toExtendedCard } from "./agent-card.ts";

export interface AgentServiceOptions {
  readonly name: string;
  readonly engine: Engine;
  readonly log: Log;
  readonly interfaces: () => readonly AgentInterface[];
  /** Whether callers can show who they are. */
  readonly authenticates: boolean;
}

/** One agent of the engine, as the dialects see it. */
export class ServedAgentService implements AgentService {
  readonly name: string;
  readonly #engine: Engine;
  readonly #log: Log;
  readonly #interfaces: () => readonly AgentInterface[];
  readonly #authenticates: boolean;
  #card: AgentCard | undefined;

  constructor(options: AgentServiceOptions) {
    this.name = options.name;
    this.#engine = options.engine;
    this.#log = options.log;
    this.#interfaces = options.interfaces;
    this.#authenticates = options.authenticates;
  }

  get profile(): AgentProfile {
    const agent = this.#engine.agent(this.name);
    if (agent === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is no such agent.");
    return agent.profile;
  }

  get card(): AgentCard {
    this.#card ??= toAgentCard(this.profile, this.#interfaces(), {
      authenticates: this.#authenticates,
      push: this.#engine.push,
    });
    return this.#card;
  }

  /** The agent was defined anew. */
  changed(): void {
    this.#card = undefined;
  }

  activate(requested: readonly string[]): readonly string[] {
    return activatedOf(this.card, requested);
  }

  async dispatch<O extends Operation>(operation: O, call: Call): Promise<OutcomeOf<O>> {
    try {
      if (operation.kind === "extended-card") return this.#extendedCard(call) as OutcomeOf<O>;
      return await this.#engine.dispatch(this.name, operation, call);
    } catch (error) {
      if (ProtocolError.is(error)) throw error;
      this.#log.error({ err: error, agent: this.name, operation: operation.kind }, "An operation failed unexpectedly.");
      throw new ProtocolError("INTERNAL_ERROR", "Something went wrong on our side.", { cause: error });
    }
  }

  originOf(taskId: string, caller: Caller): Promise<string | undefined> {
    return this.#engine.originOf(this.name, taskId, caller);
  }

  #extendedCard(call: Call): AgentCard {
    const { extended } = this.profile;
    if (extended === undefined || !this.#authenticates) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "This agent has no extended card.");
    }
    if (!call.caller.authenticated) {
      throw new ProtocolError("UNAUTHENTICATED", "The extended card is for authenticated callers.");
    }
    if (extended.description === undefined && extended.skills === undefined) {
      throw new ProtocolError("EXTENDED_AGENT_CARD_NOT_CONFIGURED", "No extended card is configured.");
    }
    return toExtendedCard(this.card, extended);
  }
}
