import type { Clock } from "../../model/ports.ts";
import { type Fields, textIn } from "../json.ts";
import { Misread } from "../task/misread.ts";
import type { Report } from "../violations.ts";

/** Longer ids may not come back whole. */
const LONGEST_ID = 64;

interface AgentSession {
  readonly id: string;
  readonly until: number;
}

/** What the agent gave out for credentials, to be shown instead of them; several at a time. */
export class AgentSessions {
  readonly #sessions: (AgentSession | undefined)[];
  readonly #openings = new Map<number, Promise<string>>();
  readonly #clock: Clock;
  readonly #report: Report;
  readonly #initialize: () => Promise<Fields>;
  #turn = 0;

  constructor(count: number, clock: Clock, report: Report, initialize: () => Promise<Fields>) {
    this.#sessions = Array.from({ length: count }, () => undefined);
    this.#clock = clock;
    this.#report = report;
    this.#initialize = initialize;
  }

  get ids(): readonly string[] {
    return this.#sessions.flatMap((session) => session?.id ?? []);
  }

  /** They are used in turn. Whoever comes while one is being opened waits for that. */
  async take(): Promise<{ readonly slot: number; readonly id: string }> {
    const slot = this.#turn++ % this.#sessions.length;
    const session = this.#sessions[slot];
    if (session !== undefined && this.#clock.now() < session.until) return { slot, id: session.id };
    return { slot, id: await this.#open(slot) };
  }

  /** The agent no longer knows it. */
  forget(slot: number, id: string): void {
    if (this.#sessions[slot]?.id === id) this.#sessions[slot] = undefined;
  }

  async reopen(slot: number): Promise<string> {
    return this.#sessions[slot]?.id ?? this.#open(slot);
  }

  #open(slot: number): Promise<string> {
    const opening = this.#openings.get(slot) ?? this.#begin(slot);
    this.#openings.set(slot, opening);
    return opening;
  }

  async #begin(slot: number): Promise<string> {
    try {
      const session = this.#read(await this.#initialize());
      this.#sessions[slot] = session;
      return session.id;
    } finally {
      this.#openings.delete(slot);
    }
  }

  #read({ agentSessionId, agentSessionTtl, version }: Fields): AgentSession {
    const id = textIn(agentSessionId);
    const seconds = Number(agentSessionTtl);
    if (version !== "1.0") throw new Misread('version of the answer to initialize is not "1.0".');
    if (id === undefined || id === "") throw new Misread("agentSessionId is missing.");
    if (!(seconds > 0)) throw new Misread("agentSessionTtl is no number of seconds.");
    if (id.length > LONGEST_ID) this.#report("session-id-too-long", `It has ${id.length}.`);
    return { id, until: this.#clock.now() + seconds * 1000 };
  }
}
