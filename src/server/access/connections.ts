import type { Server, Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { QuotaCounter } from "../../engine/concurrency.ts";
import { toNetworkPrefix } from "../../model/caller.ts";
import { type PeerCertificate, toPeerCertificate } from "../../wire/tls.ts";

const known = new WeakMap<TLSSocket, PeerCertificate>();

/** The peer's client certificate, if any; read once per connection. */
export function peerCertificateOf(socket: Socket): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  let certificate = known.get(socket);
  if (certificate === undefined) {
    const shown = socket.getPeerCertificate();
    // Node returns an empty object if there is no certificate, and undefined once the socket is closed.
    if (shown?.raw === undefined) return undefined;
    certificate = toPeerCertificate(shown, socket.authorized);
    known.set(socket, certificate);
  }
  return certificate;
}

/** Bounds on connections and on the time a request may take to arrive, against floods and slow senders. */
export interface ConnectionLimits {
  /** Maximum number of open connections; HTTP and gRPC are counted separately. */
  readonly connections: number;
  /** Maximum number of open connections from one address; HTTP and gRPC are counted separately. */
  readonly connectionsPerAddress: number;
  /** gRPC calls per second from one address that are reset before their caller is authenticated. */
  readonly resetsPerAddress: number;
  /** Maximum size of a request's headers in bytes; HTTP answers more with 431. */
  readonly headers: number;
  /** Maximum time to receive the headers of a request, in milliseconds. */
  readonly headersTimeout: number;
  /** Maximum time to receive the whole request, in milliseconds. */
  readonly requestTimeout: number;
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  connections: 50_000,
  connectionsPerAddress: 30_000,
  resetsPerAddress: 50,
  headers: 16 * 1024,
  headersTimeout: 20_000,
  requestTimeout: 300_000,
};

/** Closes connections above the limits before anything is read from them. */
export function limitConnections(
  server: Server,
  { connections, connectionsPerAddress }: ConnectionLimits,
  refuses: (network: string) => boolean = () => false,
): void {
  const shares = new QuotaCounter(connectionsPerAddress);
  server.maxConnections = connections;
  server.prependListener("connection", (socket: Socket) => {
    const from = socket.remoteAddress === undefined ? undefined : toNetworkPrefix(socket.remoteAddress);
    if ((from !== undefined && refuses(from)) || !shares.acquire(from)) socket.destroy();
    else socket.once("close", () => shares.release(from));
  });
}
