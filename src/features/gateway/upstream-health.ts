import type { UpstreamStatus } from "../../core/agents/upstream-of.ts";
import { ConnectionError } from "../../core/client/errors.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import type { Clock, Log } from "../../core/model/ports.ts";
import { type BreakerPolicy, CircuitBreaker } from "./circuit-breaker.ts";

interface HealthOptions {
  readonly agent: string;
  readonly url: string;
  readonly breaker: BreakerPolicy;
  readonly clock: Pick<Clock, "now">;
  readonly random: () => number;
  readonly log: Log;
  readonly onRecovery: () => void;
}

/** Whether an upstream can be reached, from the outcomes of calls: reports changes, and refuses calls while it is down. */
export class UpstreamHealth {
  readonly #options: HealthOptions;
  readonly #breaker: CircuitBreaker;
  #reachable: boolean | undefined;
  #failures = 0;

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#breaker = new CircuitBreaker(options.breaker, options.clock, options.random);
  }

  get status(): UpstreamStatus {
    return { url: this.#options.url, reachable: this.#reachable, failures: this.#failures };
  }

  /** Seconds until a call is attempted again; 0: it may be now, and its outcome must be counted. */
  acquire(): number {
    return Math.ceil(this.#breaker.acquire() / 1_000);
  }

  countSuccess(): void {
    const { agent, log, onRecovery, url } = this.#options;
    const wasDown = this.#reachable === false;
    this.#breaker.succeeded();
    this.#reachable = true;
    if (!wasDown) return;
    log.info({ agent, upstream: url }, "Upstream reachable again");
    onRecovery();
  }

  /** An error that the upstream returned shows that it can be reached. */
  countFailure(error: unknown, isAborted = false): void {
    if (isAborted || !(ProtocolError.is(error) || ConnectionError.is(error))) this.countNothing();
    else if (isConnectionFailure(error)) this.#countUnreachable(error);
    else this.countSuccess();
  }

  /** The outcome shows nothing about the upstream. */
  countNothing(): void {
    this.#breaker.abandoned();
  }

  #countUnreachable({ message }: Error): void {
    const { agent, log, url } = this.#options;
    this.#failures++;
    this.#breaker.failed();
    if (this.#reachable === false) return;
    this.#reachable = false;
    log.warn({ agent, upstream: url, reason: message }, "Upstream not reachable");
  }
}

/** A card that cannot be used counts too: without one, nothing can be called. */
export function isConnectionFailure(error: unknown): boolean {
  if (ConnectionError.is(error)) return error.code !== "aborted";
  return ProtocolError.is(error) && error.code === "UNAVAILABLE";
}
