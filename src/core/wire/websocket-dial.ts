/** Dials a WebSocket server. */

import { Agent, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import { connect } from "node:tls";
import { WebSocket } from "ws";
import { DialError } from "./dial-error.ts";
import type { TlsVerifyOptions } from "./tls.ts";
import { MAX_MESSAGE_BYTES, toWebSocketLink, type WebSocketLink, type WebSocketLinkOptions } from "./websocket-link.ts";

export interface DialOptions extends WebSocketLinkOptions {
  /** Made for this connection. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connectTimeoutMs: number;
  readonly tls?: TlsVerifyOptions;
  readonly signal?: AbortSignal;
}

export function dialWebSocket(url: string, options: DialOptions): Promise<WebSocketLink> {
  const { clock, connectTimeoutMs, headers, signal, tls } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(new DialError("stopped", "The dialling was stopped."));
      return;
    }
    const socket = new WebSocket(url, {
      headers: { ...headers },
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
      autoPong: false,
      ...(url.startsWith("wss:") ? { agent: toHttpsAgent(tls ?? {}) } : undefined),
    });
    const fail = (error: DialError): void => {
      release();
      // Later errors of the socket do not matter, but without a listener they would end the process.
      socket.on("error", () => {});
      socket.terminate();
      reject(error);
    };
    const stop = (): void => fail(new DialError("stopped", "The dialling was stopped."));
    const cancelTimer = clock.after(connectTimeoutMs, () =>
      fail(new DialError("timeout", `There was no connection within ${connectTimeoutMs / 1000} s.`)),
    );
    const release = (): void => {
      cancelTimer();
      signal?.removeEventListener("abort", stop);
      socket.removeAllListeners();
    };
    signal?.addEventListener("abort", stop);
    let carrier: Duplex | undefined;
    socket.on("upgrade", (response) => {
      carrier = response.socket;
    });
    socket.on("unexpected-response", (_request, { statusCode = 0 }) =>
      fail(new DialError("refused", `The connection was refused with status ${statusCode}.`, statusCode)),
    );
    socket.on("error", (error) => fail(toDialError(error)));
    socket.on("open", () => {
      release();
      resolve(toWebSocketLink(socket, carrier as Duplex, options));
    });
  });
}

const CERTIFICATE_CODE = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)/;

function toDialError(error: Error & { readonly code?: string }): DialError {
  if (error instanceof DialError) return error;
  const certificate = error.code !== undefined && CERTIFICATE_CODE.test(error.code);
  return new DialError(certificate ? "certificate" : "unreachable", error.message || (error.code ?? "unreachable"));
}

function toHttpsAgent({ ca, fingerprint, insecure, servername }: TlsVerifyOptions): Agent {
  const verification = {
    ...(servername === undefined ? undefined : { servername }),
    ...(ca === undefined ? undefined : { ca }),
  };
  if (fingerprint !== undefined) return new PinnedAgent(normalizeFingerprint(fingerprint), verification);
  return new Agent({ ...verification, rejectUnauthorized: insecure !== true });
}

/** Nothing is sent to the other side, credentials least of all, before its certificate has been verified. */
class PinnedAgent extends Agent {
  readonly #fingerprint: string;

  constructor(fingerprint: string, options: { readonly servername?: string }) {
    super({ ...options, rejectUnauthorized: false });
    this.#fingerprint = fingerprint;
  }

  override createConnection(
    options: RequestOptions,
    done: (error: Error | null, stream: Duplex) => void = () => {},
  ): undefined {
    const socket = connect({
      host: options.host ?? "",
      port: Number(options.port),
      servername: options.servername ?? "",
      rejectUnauthorized: false,
    });
    const onError = (error: Error): void => done(error, socket);
    socket.once("error", onError);
    socket.once("secureConnect", () => {
      socket.off("error", onError);
      if (normalizeFingerprint(socket.getPeerCertificate().fingerprint256 ?? "") === this.#fingerprint)
        return done(null, socket);
      socket.destroy();
      done(new DialError("certificate", "The certificate is not the pinned one."), socket);
    });
  }
}

function normalizeFingerprint(fingerprint: string): string {
  return fingerprint.replaceAll(":", "").toLowerCase();
}
