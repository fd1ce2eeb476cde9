import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { toNetworkPrefix } from "../../model/caller.ts";
import type { Log } from "../../model/ports.ts";
import type { PeerCertificate } from "../../wire/tls.ts";
import { type Rate, RateLimiter } from "../access/admission.ts";
import { peerCertificateOf } from "../access/connections.ts";
import type { TrustedProxies } from "../access/trusted-proxies.ts";

/** Costs of calls that end before their caller is admitted. A reset costs more: it can be sent without waiting. */
export const CALL_COST = 1;
export const RESET_COST = 10;

const BURST_SECONDS = 10;
/** For calls without an admitted caller, from all addresses together. */
const GLOBAL_RATE: Rate = { perSecond: 500 * RESET_COST, burst: 500 * RESET_COST * BURST_SECONDS };
const BLOCK_MS = 10_000;
const MAX_BLOCKED = 20_000;

/** `address`: the address is blocked for a while; `all`: the total of all addresses is exceeded. */
type Excess = "address" | "all";

/** Limits calls without an admitted caller, per address and in total. */
export class FloodGuard {
  readonly #ofAddress: RateLimiter;
  readonly #ofAll: RateLimiter;
  readonly #now: () => number;
  /** Expiry by address, in the order in which addresses were blocked. */
  readonly #blocked = new Map<string, number>();

  constructor(resetsPerAddress: number, now: () => number) {
    const perSecond = resetsPerAddress * RESET_COST;
    this.#ofAddress = new RateLimiter({ perSecond, burst: perSecond * BURST_SECONDS }, now);
    this.#ofAll = new RateLimiter(GLOBAL_RATE, now);
    this.#now = now;
  }

  /** Returns undefined if within the limits. Calls above the limit of their address do not count towards the total. */
  charge(network: string, cost: number): Excess | undefined {
    if (this.isBlocked(network) || this.#ofAddress.take(network, cost) > 0) {
      this.block(network);
      return "address";
    }
    return this.#ofAll.take("", cost) > 0 ? "all" : undefined;
  }

  isBlocked(network: string): boolean {
    const until = this.#blocked.get(network);
    if (until === undefined) return false;
    if (until > this.#now()) return true;
    this.#blocked.delete(network);
    return false;
  }

  block(network: string): void {
    if (this.#blocked.has(network)) return;
    const [first] = this.#blocked.keys();
    if (first !== undefined && this.#blocked.size >= MAX_BLOCKED) this.#blocked.delete(first);
    this.#blocked.set(network, this.#now() + BLOCK_MS);
  }
}

/** Open calls without an admitted caller: to open services, or refused and not ended yet. */
const MAX_UNADMITTED_CALLS = 512;
const MAX_UNADMITTED_CALLS_PER_ADDRESS = 128;

/**
 * Open calls without an admitted caller. Beyond the limits an older call makes room for the new one, so that those who
 * hold many open cannot have the health check of another caller refused.
 */
export class UnadmittedCalls<Call> {
  /** Oldest first. */
  readonly #byNetwork = new Map<string, Set<Call>>();
  #size = 0;

  /** Returns the call to close for it: the oldest of its address, or of the address with the most. */
  add(call: Call, network: string, isProxy: boolean): Call | undefined {
    const own = this.#byNetwork.get(network) ?? new Set();
    this.#byNetwork.set(network, own);
    own.add(call);
    this.#size++;
    if (own.size > MAX_UNADMITTED_CALLS_PER_ADDRESS && !isProxy) return this.#removeOldest(network, own);
    if (this.#size <= MAX_UNADMITTED_CALLS) return undefined;
    let most: readonly [string, ReadonlySet<Call>] = ["", new Set()];
    for (const one of this.#byNetwork) if (one[1].size > most[1].size) most = one;
    return this.#removeOldest(...most);
  }

  delete(call: Call, network: string): void {
    const calls = this.#byNetwork.get(network);
    if (calls?.delete(call) !== true) return;
    this.#size--;
    if (calls.size === 0) this.#byNetwork.delete(network);
  }

  #removeOldest(network: string, calls: ReadonlySet<Call>): Call | undefined {
    const [oldest] = calls;
    if (oldest !== undefined) this.delete(oldest, network);
    return oldest;
  }
}

export interface KeepAlive {
  readonly afterMs: number;
  readonly timeoutMs: number;
}

/** Time for the GOAWAY frame to reach the peer. */
const GOAWAY_FLUSH_MS = 50;

interface ConnectionHooks {
  readonly proxies: TrustedProxies | undefined;
  onUnadmitted(connection: Connection, cost: number): void;
  onKnown(session: ServerHttp2Session): void;
}

/** One HTTP/2 connection, with keepalive pings. */
export class Connection {
  /** Without a port. */
  readonly remoteAddress: string | undefined;
  readonly certificate: PeerCertificate | undefined;
  #isKnown = false;
  #isCut = false;
  /** Calls whose callers are being checked. */
  #checking = 0;
  #readBefore = 0;
  #excess = 0;
  readonly #hooks: ConnectionHooks;
  readonly #session: ServerHttp2Session;
  readonly #socket: Socket | undefined;
  readonly #timeoutMs: number;
  readonly #pingTimer: NodeJS.Timeout;
  #pongTimer: NodeJS.Timeout | undefined;

  /** `socket` is the transport of the session, beneath TLS if any. */
  constructor(
    session: ServerHttp2Session,
    socket: Socket | undefined,
    { afterMs, timeoutMs }: KeepAlive,
    hooks: ConnectionHooks,
    log: Log,
  ) {
    this.#session = session;
    this.#socket = socket;
    this.#hooks = hooks;
    this.#timeoutMs = timeoutMs;
    // Read now: a closed socket has no address.
    this.remoteAddress = session.socket.remoteAddress;
    this.certificate = peerCertificateOf(session.socket);
    this.#pingTimer = setInterval(this.#ping, afterMs);
    this.#pingTimer.unref();
    session.on("error", (error) => log.debug({ err: error }, "A gRPC connection failed."));
    session.on("close", this.#onClose);
  }

  /** A caller on this connection has authenticated. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  recognise(): void {
    if (this.#isKnown) return;
    this.#isKnown = true;
    this.#hooks.onKnown(this.#session);
  }

  callerAddress(forwarded: string | string[] | undefined): string | undefined {
    return forwarded === undefined || this.#hooks.proxies === undefined
      ? this.remoteAddress
      : this.#hooks.proxies.callerAddress(this.remoteAddress, { "x-forwarded-for": forwarded.toString() });
  }

  /** Its message may arrive while the caller is checked. */
  awaitCheck(check: Promise<unknown>): void {
    this.#checking++;
    const settle = () => {
      this.#checking--;
    };
    check.then(settle, settle);
  }

  get isAwaitingCheck(): boolean {
    return this.#checking > 0;
  }

  /**
   * How much more it has received than calls without credentials need. Frames that Node rejects or answers by itself, or
   * of which it waits for more, are seen only by their bytes. To be asked at regular times.
   */
  excessReceived(allowed: number): number {
    const read = this.#socket?.bytesRead ?? 0;
    this.#excess = Math.max(0, this.#excess + read - this.#readBefore - allowed);
    this.#readBefore = read;
    return this.#excess;
  }

  /** Sends GOAWAY, and closes after running calls have ended. */
  closeGracefully(): void {
    this.#session.close();
  }

  /**
   * Destroys the socket, not the session: destroying a session with hundreds of partly answered calls loops forever in
   * Node's native code (seen on Node 20.20).
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

  /** Counts a call that ended before its caller was admitted. */
  countUnadmitted(cost: number): void {
    if (!this.#isKnown && !this.#isCut) this.#hooks.onUnadmitted(this, cost);
  }

  /** Sends GOAWAY with ENHANCE_YOUR_CALM, and accepts nothing more from the peer. */
  closeForAbuse(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    // Deferred: the counted call may be about to be answered.
    process.nextTick(() => {
      if (this.#session.destroyed) return;
      this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      setTimeout(() => this.destroy(), GOAWAY_FLUSH_MS).unref();
    });
  }

  readonly #ping = (): void => {
    if (this.#pongTimer !== undefined) return;
    this.#pongTimer = setTimeout(this.#onPongTimeout, this.#timeoutMs);
    this.#pongTimer.unref();
    // A closing connection cannot send the ping, and the timeout applies.
    if (!this.#session.destroyed) this.#session.ping(this.#onPong);
  };

  readonly #onPong = (error: Error | null): void => {
    if (error !== null) return;
    clearTimeout(this.#pongTimer);
    this.#pongTimer = undefined;
  };

  readonly #onPongTimeout = (): void => this.destroy();

  readonly #onClose = (): void => {
    clearInterval(this.#pingTimer);
    clearTimeout(this.#pongTimer);
  };
}
