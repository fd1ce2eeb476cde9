import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { networkOf } from "../../model/address.ts";
import type { Log } from "../../model/ports.ts";
import type { PeerCertificate } from "../../wire/peer-certificate.ts";
import { peerCertificateOf } from "../peer-certificate.ts";

export interface KeepAlive {
  readonly afterMs: number;
  readonly timeoutMs: number;
}

/** For the reason of a cut to reach the peer. */
const LEAVING_MS = 1_000;

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
  leave(): void {
    this.#session.close();
  }

  /**
   * The connection itself, not the session: destroying a session with hundreds of calls that have begun to be answered
   * loops in Node's native code without end (seen on Node 20.20).
   */
  cut(): void {
    if (this.#socket === undefined) this.#session.destroy();
    else this.#socket.destroy();
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  get network(): string {
    return this.remoteAddress === undefined ? "" : networkOf(this.remoteAddress);
  }

  /** A call on it ended before its caller was admitted. */
  countUnadmitted(cost: number): void {
    if (!this.isKnown && !this.#isCut) this.#onUnadmitted(this, cost);
  }

  /** Tells the peer that it asks for too much, and takes nothing more from it. */
  calmDown(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    // Not at once: the call that was counted may be about to be answered.
    process.nextTick(() => {
      if (this.#session.destroyed) return;
      this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      this.#socket?.destroySoon();
      // A peer that reads nothing would keep what is left to be sent waiting.
      setTimeout(() => this.cut(), LEAVING_MS).unref();
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

  readonly #onSilence = (): void => this.cut();

  readonly #onClose = (): void => {
    clearInterval(this.#asking);
    clearTimeout(this.#waiting);
  };
}
