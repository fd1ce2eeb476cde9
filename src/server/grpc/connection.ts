import type { ServerHttp2Session } from "node:http2";
import type { Log } from "../../model/ports.ts";
import type { PeerCertificate } from "../../wire/peer-certificate.ts";
import { peerCertificateOf } from "../peer-certificate.ts";

export interface KeepAlive {
  readonly afterMs: number;
  readonly timeoutMs: number;
}

/** One HTTP/2 connection: asks from time to time whether its peer is still there. */
export class Connection {
  /** Without a port. */
  readonly remoteAddress: string | undefined;
  readonly certificate: PeerCertificate | undefined;
  readonly #session: ServerHttp2Session;
  readonly #timeoutMs: number;
  readonly #asking: NodeJS.Timeout;
  #waiting: NodeJS.Timeout | undefined;

  constructor(session: ServerHttp2Session, { afterMs, timeoutMs }: KeepAlive, log: Log) {
    this.#session = session;
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

  cut(): void {
    this.#session.destroy();
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
