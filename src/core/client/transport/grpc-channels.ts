/** gRPC channels: one for each address, closed when idle. */

import type { ChannelCredentials, ChannelOptions, Client, VerifyOptions } from "@grpc/grpc-js";
import { type ClientTlsOptions, trustedAuthorities } from "../../auth/login/client-certificate.ts";
import { canParseUrl } from "../../model/url.ts";
import { NotConnectedError } from "../../wire/exchange.ts";
import { isLoopback } from "../../wire/loopback.ts";

type Grpc = typeof import("@grpc/grpc-js");

export interface GrpcChannel {
  readonly key: string;
  readonly client: Client;
  calls: number;
  closing: NodeJS.Timeout | undefined;
}

export interface GrpcTlsOptions {
  /** Certificates of servers are not verified. */
  readonly insecure?: boolean;
  readonly tls?: ClientTlsOptions | undefined;
}

const IDLE_MS = 30_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Common servers close connections with more frequent keepalive pings while idle. */
const MIN_PROBE_MS = 300_000;
const PROBE_TIMEOUT_MS = 20_000;

export class GrpcChannels {
  readonly #grpc: Grpc;
  readonly #insecure: boolean;
  readonly #own: ClientTlsOptions;
  readonly #open = new Map<string, GrpcChannel>();

  constructor(grpc: Grpc, { insecure, tls }: GrpcTlsOptions) {
    this.#grpc = grpc;
    this.#insecure = insecure ?? false;
    this.#own = tls ?? {};
  }

  /** Acquires a channel for one call; must be released after it. */
  take(address: GrpcAddress, silenceMs: number): GrpcChannel {
    const probeMs = Math.max(silenceMs, MIN_PROBE_MS);
    const key = `${address.secure ? "grpcs" : "grpc"}://${address.authority} ${probeMs}`;
    let channel = this.#open.get(key);
    if (channel === undefined) {
      channel = { key, client: this.#connect(address, probeMs), calls: 0, closing: undefined };
      this.#open.set(key, channel);
    }
    clearTimeout(channel.closing);
    channel.calls++;
    return channel;
  }

  release(channel: GrpcChannel, failure: Error | undefined): void {
    channel.calls--;
    // The library reconnects with its own backoff. Retries are decided elsewhere, so the next call reconnects at once.
    const isDead = failure?.cause instanceof NotConnectedError;
    if (isDead && this.#open.get(channel.key) === channel) this.#open.delete(channel.key);
    if (channel.calls > 0) return;
    if (this.#open.get(channel.key) !== channel) {
      channel.client.close();
      return;
    }
    channel.closing = setTimeout(() => {
      this.#open.delete(channel.key);
      channel.client.close();
    }, IDLE_MS);
    channel.closing.unref();
  }

  #connect({ authority, isLoopback, secure }: GrpcAddress, probeMs: number): Client {
    const { Client, credentials } = this.#grpc;
    return new Client(authority, secure ? this.#tls() : credentials.createInsecure(), {
      ...OPTIONS,
      "grpc.keepalive_time_ms": probeMs,
      ...(isLoopback ? { "grpc.enable_http_proxy": 0 } : {}),
    });
  }

  /** `NODE_TLS_REJECT_UNAUTHORIZED=0` disables certificate checks for gRPC too; the library itself ignores it. */
  #tls(): ChannelCredentials {
    const isUnchecked = this.#insecure || process.env.NODE_TLS_REJECT_UNAUTHORIZED === "0";
    const { cert, key } = this.#own;
    const { ca } = trustedAuthorities(this.#own);
    const [authorities, privateKey, chain] = [ca?.join("\n"), key, cert].map(toBuffer);
    return this.#grpc.credentials.createSsl(authorities, privateKey, chain, isUnchecked ? ANY_CERTIFICATE : {});
  }
}

function toBuffer(pem: string | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}

const ANY_CERTIFICATE: VerifyOptions = { rejectUnauthorized: false, checkServerIdentity: () => undefined };

const OPTIONS: ChannelOptions = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  "grpc.keepalive_timeout_ms": PROBE_TIMEOUT_MS,
  // Otherwise a call could wait for the reconnect backoff of another channel.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.service_config_disable_resolution": 1,
};

export interface GrpcAddress {
  /** `host:port`; IPv6 addresses in brackets. */
  readonly authority: string;
  readonly secure: boolean;
  readonly isLoopback: boolean;
}

interface GrpcAddressOptions {
  readonly cardUrl?: string | undefined;
  /** Whether an address without a scheme uses TLS. Default: as the card's own URL. */
  readonly tls?: boolean | undefined;
}

const GRPC_SCHEMES: Readonly<Record<string, boolean>> = {
  "http:": false,
  "grpc:": false,
  "https:": true,
  "grpcs:": true,
};

/** gRPC's own spelling of a name that DNS resolves; a name server of its own choice is not supported. */
const DNS_NAME = /^dns:(?:\/\/\/)?(?=[^/])/i;

/** `undefined` if it is not a gRPC address. gRPC has no use for a path, which is dropped. */
export function parseGrpcAddress(given: string, options: GrpcAddressOptions = {}): GrpcAddress | undefined {
  const url = given.replace(DNS_NAME, "");
  const scheme = /^([a-z][a-z0-9+.-]*:)\/\//i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined ? url.startsWith("/") : GRPC_SCHEMES[scheme] === undefined) return undefined;
  // `URL` validates and lower-cases hosts only for special schemes.
  const spelt = `http://${scheme === undefined ? url : url.slice(scheme.length + 2)}`;
  if (!canParseUrl(spelt)) return undefined;
  const { hostname, port, pathname } = new URL(spelt);
  if (scheme === undefined && pathname !== "/") return undefined;
  const isLocal = isLoopback(hostname);
  const secure = scheme === undefined ? usesTls(isLocal, options) : (GRPC_SCHEMES[scheme] as boolean);
  return {
    authority: `${hostname}:${port || explicitPort(spelt) || (secure ? "443" : "80")}`,
    secure,
    isLoopback: isLocal,
  };
}

/** `URL` omits the default port of the scheme. */
function explicitPort(url: string): string | undefined {
  return /^http:\/\/[^/?#]*:(\d+)(?:[/?#]|$)/.exec(url)?.[1];
}

/** Without TLS if the card was served without TLS; without a card URL, only on loopback. */
function usesTls(isLocal: boolean, { cardUrl, tls }: GrpcAddressOptions): boolean {
  if (tls !== undefined) return tls;
  if (cardUrl !== undefined && /^https?:/i.test(cardUrl)) return /^https:/i.test(cardUrl);
  return !isLocal;
}
