/**
 * Which of several nodes on one store has the connections of a carrier: a record in the store that names the node and
 * expires unless it is renewed.
 */

import type { Clock, Log } from "../../model/ports.ts";
import type { Records } from "../../model/records.ts";

export interface HoldTools {
  readonly records: Pick<Records, "record" | "put">;
  readonly node: string;
  /** A node that is silent for this long has lost its connections. */
  readonly leaseMs: number;
  /** A clock that is never set. */
  readonly monotonic: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

interface HoldListener {
  /** Resolves once the connections are being opened. */
  onGain(): Promise<void>;
  /** Resolves once they are closed. */
  onLose(): Promise<void>;
  /** This node does not try to connect any more: another one may. */
  hasGivenUp(): boolean;
}

const SPACE = "connections";
const MAX_POLL_MS = 2_000;
/** Of the lease: the connections are closed before another node may open them. */
const SAFE_PART = 0.8;

/** Waits for its turn, then renews it until it is lost or released. */
export class Hold {
  readonly #name: string;
  readonly #tools: HoldTools;
  readonly #listener: HoldListener;
  readonly #value: string;
  /** When the connections have to be closed unless the hold was renewed; undefined: another node has them, or none. */
  #until: number | undefined;
  #cancelTimer: (() => void) | undefined;
  #looking: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(name: string, tools: HoldTools, listener: HoldListener) {
    this.#name = name;
    this.#tools = tools;
    this.#listener = listener;
    this.#value = JSON.stringify({ node: tools.node });
    this.#lookLater(0);
  }

  get isHeld(): boolean {
    return this.#until !== undefined;
  }

  /** Closes the connections and lets another node open them. */
  async release(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer?.();
    await this.#looking;
    if (this.#until !== undefined) await this.#free();
  }

  #lookLater(delay: number): void {
    if (this.#closed) return;
    this.#cancelTimer = this.#tools.clock.after(delay, () => {
      this.#looking = this.#look()
        .catch((error: unknown) => {
          this.#tools.log.warn({ err: error, carrier: this.#name }, "Which node has a connection could not be stored.");
        })
        .then(() => this.#lookLater(this.#delay));
    });
  }

  get #delay(): number {
    const { leaseMs, monotonic } = this.#tools;
    const poll = Math.min(MAX_POLL_MS, leaseMs / 5);
    return this.#until === undefined ? poll : Math.max(Math.min(poll, this.#until - monotonic()), 1);
  }

  async #look(): Promise<void> {
    const { leaseMs, log, monotonic, records } = this.#tools;
    const sentAt = monotonic();
    if (this.#until === undefined) {
      if ((await records.record(SPACE, this.#name)) !== undefined || !(await this.#put(null, leaseMs))) return;
      this.#until = sentAt + leaseMs * SAFE_PART;
      log.info({ carrier: this.#name }, "This node opens the connections of a carrier.");
      await this.#gain();
      return;
    }
    if (this.#listener.hasGivenUp()) {
      this.#closed = true;
      await this.#free();
      return;
    }
    const renewed = await this.#renew();
    if (renewed === true) this.#until = sentAt + leaseMs * SAFE_PART;
    else if (renewed === false || monotonic() >= this.#until) {
      log.warn({ carrier: this.#name }, "This node has lost the connections of a carrier to another one.");
      await this.#lose();
    }
  }

  /** Kept without connections, no node would open them. */
  async #gain(): Promise<void> {
    try {
      await this.#listener.onGain();
    } catch (error) {
      const fields = { err: error, carrier: this.#name };
      this.#tools.log.warn(fields, "This node could not open the connections of a carrier; it is tried again.");
      await this.#free();
    }
  }

  /** Undefined: it is not known, because the store does not answer in the time that is left. */
  async #renew(): Promise<boolean | undefined> {
    const { clock, monotonic } = this.#tools;
    let stopTimer = () => {};
    const late = new Promise<undefined>((resolve) => {
      stopTimer = clock.after(Math.max((this.#until ?? 0) - monotonic(), 1), () => resolve(undefined));
    });
    const put = this.#put(this.#value, this.#tools.leaseMs).catch(() => undefined);
    const renewed = await Promise.race([put, late]);
    stopTimer();
    return renewed;
  }

  #put(ifValue: string | null, ttlMs: number): Promise<boolean> {
    return this.#tools.records.put({ space: SPACE, key: this.#name, value: this.#value, ttlMs, ifValue });
  }

  async #free(): Promise<void> {
    await this.#lose();
    await this.#put(this.#value, 1).catch(() => false);
  }

  async #lose(): Promise<void> {
    this.#until = undefined;
    await this.#listener.onLose();
  }
}
