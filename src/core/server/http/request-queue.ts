import { IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { toNetworkPrefix } from "../../model/caller.ts";

/** A caller that sends more without reading an answer is disconnected. */
const MAX_UNANSWERED = 64;
/** The same until a caller on the connection is known, where callers have to show credentials. */
const MAX_UNANSWERED_UNKNOWN = 8;
/** Of all unanswered requests on such a connection but the first, whose size is bounded by itself. */
const MAX_WAITING_HEADER_BYTES = 16 * 1024;
/** Of one request. Each costs time to parse, whatever its length, and Node silently drops those beyond a limit of its own. */
export const MAX_HEADERS = 128;

/** Chunks below this size are copied together. Each is a Buffer, which costs hundreds of bytes whatever its length. */
const SMALL_CHUNK_BYTES = 1024;
const BLOCK_BYTES = 4 * 1024;
/** Small chunks of a refused request; more are an attack, because parsing them takes longer than sending them. */
const MAX_DISCARDED_CHUNKS = 256;
/** Chunks below this size of a request whose caller is still being checked; more are an attack, too. */
const MAX_UNCHECKED_CHUNKS = 1_024;
const TINY_CHUNK_BYTES = 16;
/** How long chunked requests from an address of such an attack are not parsed, except on connections of known callers. */
const PENALTY_MS = 1_000;
const MAX_PENALTIES = 10_000;

const queues = new WeakMap<Socket, RequestQueue>();

/** Addresses that sent many tiny chunks lately, and until when they are remembered. One of each server. */
export type ChunkPenalties = Map<string, number>;

interface QueueRules {
  readonly takesUpgrades: boolean;
  readonly requiresCredentials: boolean;
  readonly penalties: ChunkPenalties;
}

/**
 * The requests of one connection. They are answered one after another, as HTTP/1.1 sends the answers anyway, so that a
 * caller that does not read has one answer waiting, and one that sends many at once takes turns with the others.
 */
export class RequestQueue {
  readonly takesUpgrades: boolean;
  readonly #requiresCredentials: boolean;
  readonly #waiting: (() => void)[] = [];
  #onKnown: (() => void) | undefined;
  #isBusy = false;
  #unanswered = 0;
  /** Of requests that came while earlier ones were unanswered. */
  #waitingBytes = 0;

  readonly #network: string;
  readonly #penalties: ChunkPenalties;

  /** `onKnown` is called when the first caller on the connection is admitted. */
  constructor(socket: Socket, { penalties, requiresCredentials, takesUpgrades }: QueueRules, onKnown: () => void) {
    this.takesUpgrades = takesUpgrades;
    this.#requiresCredentials = requiresCredentials;
    this.#penalties = penalties;
    this.#onKnown = onKnown;
    this.#network = toNetworkPrefix(socket.remoteAddress ?? "");
    queues.set(socket, this);
  }

  penalise(): void {
    const [first] = this.#penalties.keys();
    if (first !== undefined && this.#penalties.size >= MAX_PENALTIES) this.#penalties.delete(first);
    this.#penalties.set(this.#network, performance.now() + PENALTY_MS);
  }

  /** Whether chunked requests are not parsed on this connection. */
  get isPenalised(): boolean {
    if (this.#penalties.size === 0 || this.#onKnown === undefined) return false;
    const until = this.#penalties.get(this.#network);
    if (until === undefined) return false;
    if (until > performance.now()) return true;
    this.#penalties.delete(this.#network);
    return false;
  }

  recognise(): void {
    const onKnown = this.#onKnown;
    this.#onKnown = undefined;
    onKnown?.();
  }

  get isUnknown(): boolean {
    return this.#requiresCredentials && this.#onKnown !== undefined;
  }

  /** Returns false if too many are unanswered. */
  add(): boolean {
    return ++this.#unanswered <= (this.isUnknown ? MAX_UNANSWERED_UNKNOWN : MAX_UNANSWERED);
  }

  /** Returns false if what waits is too large. */
  addHeaders(rawHeaders: readonly string[]): boolean {
    if (this.#unanswered <= 1 || !this.isUnknown) return true;
    for (const { length } of rawHeaders) this.#waitingBytes += length;
    return this.#waitingBytes <= MAX_WAITING_HEADER_BYTES;
  }

  /** Begins as soon as the earlier requests are answered. */
  start(response: ServerResponse, begin: () => void): void {
    response.once("close", this.#next);
    if (this.#isBusy) this.#waiting.push(begin);
    else {
      this.#isBusy = true;
      begin();
    }
  }

  readonly #next = (): void => {
    this.#unanswered--;
    const begin = this.#waiting.shift();
    if (this.#unanswered === 0) this.#waitingBytes = 0;
    if (begin === undefined) this.#isBusy = false;
    // Requests of other connections come first.
    else setImmediate(begin);
  };
}

export function queueOf({ socket }: IncomingMessage): RequestQueue | undefined {
  return queues.get(socket);
}

const UPGRADE_REQUESTED = Symbol("upgrade asked");
const IS_EXCESS = Symbol("too many are unanswered");

/**
 * With an upgrade listener, Node emits `upgrade` for every protocol. Many clients opportunistically request HTTP/2
 * (`Upgrade: h2c`) and expect a response in HTTP/1.1. A request in excess, or with too many headers, is reported as an
 * upgrade, because only then does Node stop parsing what else has arrived.
 */
export class QueuedRequest extends IncomingMessage {
  declare [UPGRADE_REQUESTED]: boolean | null;
  [IS_EXCESS]: boolean;
  #isCounted = false;
  #isDiscarded = false;
  #discarded = 0;
  #tiny = 0;
  #block: Buffer | undefined;
  #used = 0;

  constructor(socket: Socket) {
    super(socket);
    this[IS_EXCESS] = queues.get(socket)?.add() === false;
  }

  get hasManyHeaders(): boolean {
    return this.rawHeaders.length > 2 * MAX_HEADERS;
  }

  get isChunked(): boolean {
    return this.headers["transfer-encoding"] !== undefined;
  }

  /** Drops the rest of the body. A caller that is still sending would miss the response if it were not read at all. */
  discard(): void {
    this.#isDiscarded = true;
    this.#block = undefined;
    this.resume();
  }

  /** Called by Node's parser for each chunk. */
  override push(chunk: Buffer | null): boolean {
    if (chunk !== null && !this.#isDiscarded && (chunk.length >= SMALL_CHUNK_BYTES || !this.isChunked)) {
      this.#flush();
      return super.push(chunk);
    }
    if (chunk === null) {
      this.#flush();
      return super.push(null);
    }
    if (!this.#isDiscarded) {
      if (chunk.length < TINY_CHUNK_BYTES && this.#isAttack()) return false;
      this.#copy(chunk);
      return true;
    }
    if (chunk.length >= SMALL_CHUNK_BYTES || ++this.#discarded <= MAX_DISCARDED_CHUNKS) return true;
    if (this.isChunked) queues.get(this.socket)?.penalise();
    // Nothing more is read from the connection, which is closed soon.
    return false;
  }

  /** Parsing tiny chunks takes longer than sending them: a caller that is not known yet may send so many. */
  #isAttack(): boolean {
    if (++this.#tiny <= MAX_UNCHECKED_CHUNKS) return false;
    const queue = queues.get(this.socket);
    if (queue === undefined || !queue.isUnknown) return false;
    queue.penalise();
    this.socket.destroy();
    return true;
  }

  #copy(chunk: Buffer): void {
    if (this.#block !== undefined && this.#used + chunk.length > BLOCK_BYTES) this.#flush();
    if (this.#block === undefined) {
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      // Together with what else has arrived at the same time.
      setImmediate(() => this.#flush());
    }
    this.#used += chunk.copy(this.#block, this.#used);
  }

  #flush(): void {
    const block = this.#block;
    if (block === undefined) return;
    const used = this.#used;
    this.#block = undefined;
    this.#used = 0;
    super.push(block.subarray(0, used));
  }

  /** Set and read by Node's server. */
  get upgrade(): boolean {
    if (this[IS_EXCESS] || this.hasManyHeaders) return true;
    const queue = queues.get(this.socket);
    if (queue?.isPenalised === true && this.isChunked) this[IS_EXCESS] = true;
    if (!this.#isCounted && queue?.addHeaders(this.rawHeaders) === false) this[IS_EXCESS] = true;
    this.#isCounted = true;
    if (this[IS_EXCESS]) return true;
    if (this[UPGRADE_REQUESTED] !== true || this.headers.upgrade?.toLowerCase() !== "websocket") return false;
    return queue?.takesUpgrades === true;
  }

  set upgrade(requested: boolean | null) {
    this[UPGRADE_REQUESTED] = requested;
  }
}

export function hasManyHeaders(request: IncomingMessage): boolean {
  return request instanceof QueuedRequest && request.hasManyHeaders;
}

export function isExcess(request: IncomingMessage): boolean {
  return request instanceof QueuedRequest && request[IS_EXCESS];
}
