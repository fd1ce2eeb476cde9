import { ProtocolError } from "../model/errors.ts";

/**
 * Until when this node may count on the leases of its tasks. Measured by a clock that is never set, from when the last
 * accepted heartbeat was sent: by the store's clock the leases end no earlier.
 */
export class NodeLease {
  /** Whether other nodes may take this node's tasks; in a store that one process owns alone no lease ever ends. */
  readonly isShared: boolean;
  readonly now: () => number;
  readonly #durationMs: number;
  #until = Number.POSITIVE_INFINITY;

  constructor(isShared: boolean, durationMs: number, now: () => number) {
    this.isShared = isShared;
    this.#durationMs = durationMs;
    this.now = now;
  }

  renew(sentAt: number): void {
    if (this.isShared) this.#until = sentAt + this.#durationMs;
  }

  get leftMs(): number {
    return this.#until - this.now();
  }

  /** Other nodes may run the tasks of this one by now. */
  get isOver(): boolean {
    return this.isShared && this.leftMs <= 0;
  }
}

/** Why a run is aborted whose task may be run by another node by now. */
export function leaseLostError(): ProtocolError {
  return new ProtocolError("UNAVAILABLE", "This node has lost contact with its store; try again.", { retryAfter: 1 });
}
