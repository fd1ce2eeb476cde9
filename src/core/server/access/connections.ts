import type { Server, Socket } from "node:net";
import { TLSSocket, Server as TlsServer } from "node:tls";
import { QuotaCounter } from "../../engine/concurrency.ts";
import { toNetworkPrefix } from "../../model/caller.ts";
import { type PeerCertificate, toPeerCertificate } from "../../wire/tls.ts";
import type { TrustedProxies } from "./trusted-proxies.ts";

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

/**
 * Connections that the operating system keeps until they are accepted; it may allow fewer. Those beyond are tried again
 * after seconds, so that a caller would wait that long if many others connect at the same time.
 */
export const LISTEN_BACKLOG = 4_096;

/** What is known of callers and their addresses before any of them is read. */
export interface ConnectionRules {
  /** Callers must show credentials, so that connections without an admitted caller are of little use. */
  readonly requiresCredentials?: boolean | undefined;
  readonly proxies?: TrustedProxies | undefined;
}

/** Connections without an admitted caller, where credentials are required. Beyond these, the oldest is closed. */
const MAX_UNKNOWN_PER_ADDRESS = 250;
const MAX_UNKNOWN = 500;
/** The same over TLS, which keeps 70 to 100 KiB of each connection for a handshake that has begun. */
const MAX_UNKNOWN_OVER_TLS = 128;
/** A connection has this long before it can be closed for a newer one; twice the number may be open meanwhile. */
const MIN_AGE_MS = 250;

interface UnknownConnection {
  readonly socket: Socket;
  readonly since: number;
}

/** Connections of callers that have not shown credentials yet, oldest first. */
export class UnknownConnections {
  readonly #all = new Map<string, UnknownConnection & { readonly network: string }>();
  readonly #byNetwork = new Map<string, Map<string, UnknownConnection>>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** `network` is undefined for a proxy: all callers would share its number. Returns false if there are too many. */
  add(socket: Socket, network: string | undefined): boolean {
    const own = network === undefined ? undefined : (this.#byNetwork.get(network) ?? new Map());
    if (own !== undefined && !this.#makeRoom(own, MAX_UNKNOWN_PER_ADDRESS)) return false;
    if (!this.#makeRoom(this.#all, this.#max)) return false;
    const peer = peerOf(socket);
    const connection = { socket, since: performance.now() };
    this.#all.set(peer, { ...connection, network: network ?? "" });
    own?.set(peer, connection);
    if (own !== undefined && network !== undefined) this.#byNetwork.set(network, own);
    socket.once("close", () => this.#delete(peer));
    return true;
  }

  /** A caller on this connection was admitted. */
  recognise(socket: Socket): void {
    this.#delete(peerOf(socket));
  }

  #makeRoom(connections: ReadonlyMap<string, UnknownConnection>, max: number): boolean {
    if (connections.size < max) return true;
    const [oldest] = connections;
    if (oldest === undefined || performance.now() - oldest[1].since < MIN_AGE_MS) return connections.size < 2 * max;
    this.#delete(oldest[0]);
    oldest[1].socket.destroy();
    return true;
  }

  #delete(peer: string): void {
    const network = this.#all.get(peer)?.network;
    if (network === undefined) return;
    this.#all.delete(peer);
    const own = this.#byNetwork.get(network);
    own?.delete(peer);
    if (own?.size === 0) this.#byNetwork.delete(network);
  }
}

export function peerOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Closes connections above the limits before anything is read from them. */
export function limitConnections(
  server: Server,
  { connections, connectionsPerAddress }: ConnectionLimits,
  { proxies, requiresCredentials }: ConnectionRules = {},
  refuses: (network: string) => boolean = () => false,
): UnknownConnections {
  const shares = new QuotaCounter(connectionsPerAddress);
  const unknown = new UnknownConnections(server instanceof TlsServer ? MAX_UNKNOWN_OVER_TLS : MAX_UNKNOWN);
  server.maxConnections = connections;
  // Node's own listener would make a session of a connection even after it was closed.
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const { remoteAddress } = socket;
    const isProxy = proxies?.has(remoteAddress) === true;
    const from = remoteAddress === undefined || isProxy ? undefined : toNetworkPrefix(remoteAddress);
    if ((from !== undefined && refuses(from)) || !shares.acquire(from)) {
      socket.destroy();
      return;
    }
    socket.once("close", () => shares.release(from));
    if (requiresCredentials === true && !unknown.add(socket, from)) socket.destroy();
    else for (const listener of listeners) listener.call(server, socket);
  });
  return unknown;
}
