import type { Server, Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { QuotaCounter } from "../../engine/concurrency.ts";
import { toNetworkPrefix } from "../../model/caller.ts";
import { type PeerCertificate, toPeerCertificate } from "../../wire/tls.ts";

const known = new WeakMap<TLSSocket, PeerCertificate>();

/** The certificate a peer has shown, if it has; read once for each connection. */
export function peerCertificateOf(socket: Socket): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  let certificate = known.get(socket);
  if (certificate === undefined) {
    const shown = socket.getPeerCertificate();
    // Node shows an empty object where there is none, and nothing at all once the socket is gone.
    if (shown?.raw === undefined) return undefined;
    certificate = toPeerCertificate(shown, socket.authorized);
    known.set(socket, certificate);
  }
  return certificate;
}

/** Bounds on connections and on how long a request may take to arrive, for whoever opens many or sends slowly. */
export interface ConnectionLimits {
  /** Open connections in all; HTTP and gRPC count apart. */
  readonly connections: number;
  /** Open connections from one address; HTTP and gRPC count apart. */
  readonly connectionsPerAddress: number;
  /** Calls of gRPC from one address that are reset within a second before their caller is known. */
  readonly resetsPerAddress: number;
  /** Bytes of a request's headers; HTTP answers more with 431. */
  readonly headers: number;
  /** The headers of a request must be there by then, in milliseconds. */
  readonly headersTimeout: number;
  /** The whole request must be there by then, in milliseconds. */
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

/** Hangs up on connections above the limits, before a byte of them is read. */
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
