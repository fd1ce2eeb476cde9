import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { toNetworkPrefix } from "../../model/caller.ts";
import type { Log } from "../../model/ports.ts";
import type { PeerCertificate } from "../../wire/tls.ts";
import { type Rate, RateLimiter } from "../access/admission.ts";
import { peerCertificateOf } from "../access/connections.ts";

/** Of calls that ended before their caller was admitted: a reset can be sent without waiting for anything. */
export const CALL_COST = 1;
export const RESET_COST = 10;

const BURST_SECONDS = 10;
/** Calls of all addresses together that no one was admitted for. */
const GLOBAL_RATE: Rate = { perSecond: 500 * RESET_COST, burst: 500 * RESET_COST * BURST_SECONDS };
const BLOCK_MS = 10_000;
const MAX_BLOCKED = 20_000;

/** `address`: nothing is taken from there for a while; `all`: the call was one too many of all callers together. */
type Excess = "address" | "all";

/** How many calls without an admitted caller come from each address and from all together. */
export class FloodGuard {
  readonly #ofAddress: RateLimiter;
  readonly #ofAll: RateLimiter;
  readonly #now: () => number;
  /** Until when, in the order in which they were refused. */
  readonly #refused = new Map<string, number>();

  constructor(resetsPerAddress: number, now: () => number) {
    const perSecond = resetsPerAddress * RESET_COST;
    this.#ofAddress = new RateLimiter({ perSecond, burst: perSecond * BURST_SECONDS }, now);
    this.#ofAll = new RateLimiter(GLOBAL_RATE, now);
    this.#now = now;
  }

  /** Undefined if that was not too much. What is too much from one address does not count for all. */
  charge(network: string, cost: number): Excess | undefined {
    if (this.isBlocked(network) || this.#ofAddress.take(network, cost) > 0) {
      this.#refuse(network);
      return "address";
    }
    return this.#ofAll.take("", cost) > 0 ? "all" : undefined;
  }

  isBlocked(network: string): boolean {
    const until = this.#refused.get(network);
    if (until === undefined) return false;
    if (until > this.#now()) return true;
    this.#refused.delete(network);
    return false;
  }

  #refuse(network: string): void {
    if (this.#refused.has(network)) return;
    const [first] = this.#refused.keys();
    if (first !== undefined && this.#refused.size >= MAX_BLOCKED) this.#refused.delete(first);
    this.#refused.set(network, this.#now() + BLOCK_MS);
  }
}

export interface KeepAlive {
  readonly afterMs: number;
  readonly timeoutMs: number;
}

/** For the reason of a cut to reach the peer. */
const GOAWAY_FLUSH_MS = 1_000;

/** One HTTP/2 connection: asks from time to time whether its peer is still there. */
export class Connection {
  /** Without a port. */
  readonly remoteAddress: string | undefined;
  readonly certificate: PeerCertificate | undefined;
  /** A caller on it has shown credentials. */
  isKnown = false;
  #isCut = false;
  readonly #session: ServerHttp2Session;
  readonly #socket: Socket | undefined;
  readonly #onUnadmitted: (connection: Connection, cost: number) => void;
  readonly #timeoutMs: number;
  readonly #asking: NodeJS.Timeout;
  #waiting: NodeJS.Timeout | undefined;

  /** `socket` is what the session runs on, beneath TLS if there is any. */
  constructor(
    session: ServerHttp2Session,
    socket: Socket | undefined,
    { afterMs, timeoutMs }: KeepAlive,
    onUnadmitted: (connection: Connection, cost: number) => void,
    log: Log,
  ) {
    this.#session = session;
    this.#socket = socket;
    this.#onUnadmitted = onUnadmitted;
    this.#timeoutMs = timeoutMs;
    // Asked for now: what was connected has no address any more once it is closed.
    this.remoteAddress = session.socket.remoteAddress;
    this.certificate = peerCertificateOf(session.socket);
    this.#asking = setInterval(this.#ask, afterMs);
    this.#asking.unref();
    session.on("error", (error) => log.debug({ err: error }, "A gRPC connection failed."));
    session.on("close", this.#onClose);
  }

  /** Tells the peer to call elsewhere, and closes after the calls under way. */
  closeGracefully(): void {
    this.#session.close();
  }

  /**
   * The connection itself, not the session: destroying a session with hundreds of calls that have begun to be answered
   * loops in Node's native code without end (seen on Node 20.20).
   */
  destroy(): void {
    if (this.#socket === undefined) this.#session.destroy();
    else this.#socket.destroy();
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  get network(): string {
    return this.remoteAddress === undefined ? "" : toNetworkPrefix(this.remoteAddress);
  }

  /** A call on it ended before its caller was admitted. */
  countUnadmitted(cost: number): void {
    if (!this.isKnown && !this.#isCut) this.#onUnadmitted(this, cost);
  }

  /** Tells the peer that it asks for too much, and takes nothing more from it. */
  closeForAbuse(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    // Not at once: the call that was counted may be about to be answered.
    process.nextTick(() => {
      if (this.#session.destroyed) return;
      this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      this.#socket?.destroySoon();
      // A peer that reads nothing would keep what is left to be sent waiting.
      setTimeout(() => this.destroy(), GOAWAY_FLUSH_MS).unref();
    });
  }

  readonly #ask = (): void => {
    if (this.#waiting !== undefined) return;
    this.#waiting = setTimeout(this.#onSilence, this.#timeoutMs);
    this.#waiting.unref();
    // False while the connection is being closed, and then nobody will answer.
    if (!this.#session.destroyed) this.#session.ping(this.#onAnswer);
  };

  readonly #onAnswer = (error: Error | null): void => {
    if (error !== null) return;
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
  };

  readonly #onSilence = (): void => this.destroy();

  readonly #onClose = (): void => {
    clearInterval(this.#asking);
    clearTimeout(this.#waiting);
  };
}
