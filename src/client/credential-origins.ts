/** Where what a caller shows of itself may go: a card may name any host, and is not the one to decide. */
import type { GrpcAddress } from "./grpc-address.ts";

export interface CredentialOptions {
  /** Where the card was found; one that was found nowhere or in a file is the caller's own word. */
  readonly cardUrl?: string | undefined;
  /** Origins besides the card's own, as `https://host` or `host:port`; `"card"` trusts every interface of the card. */
  readonly credentialOrigins?: readonly string[] | "card" | undefined;
  /** The caller said itself how a gRPC address without a scheme is meant. */
  readonly grpcTls?: boolean | undefined;
}

interface Place {
  readonly hostname: string;
  readonly port: string;
  readonly secure: boolean;
}

/** An interface: its URL, and for gRPC the address that was read from it. */
export interface CredentialTarget {
  readonly url: string;
  readonly address?: GrpcAddress | undefined;
}

/** Whether an interface may have the headers and credentials of the caller. Throws a TypeError for what is no origin. */
export function createCredentialGate(options: CredentialOptions): (target: CredentialTarget) => boolean {
  const { cardUrl, credentialOrigins = [], grpcTls } = options;
  const card = cardUrl === undefined ? undefined : webPlace(cardUrl);
  if (credentialOrigins === "card") return () => true;
  const listed = credentialOrigins.map(toOrigin);
  if (card === undefined) return () => true;
  return ({ address, url }) => {
    if (address !== undefined) {
      const isListed = listed.some((origin) => sameServer(origin, grpcPlace(address)));
      return isListed || isGrpcOfCard(card, grpcPlace(address), grpcTls !== undefined);
    }
    const place = webPlace(url);
    return place !== undefined && [card, ...listed].some((origin) => sameServer(origin, place));
  };
}

/** gRPC has a port of its own, so that only hosts can be compared; what was found encrypted is not used in the open. */
function isGrpcOfCard(card: Place, grpc: Place, isChosen: boolean): boolean {
  return sameHost(card, grpc) && (grpc.secure || !card.secure || isChosen);
}

function sameServer(one: Place, other: Place): boolean {
  return one.secure === other.secure && one.port === other.port && sameHost(one, other);
}

/** The names of this machine are one host: servers write another one into their card than people type. */
function sameHost(one: Place, other: Place): boolean {
  return one.hostname === other.hostname || (isLoopback(one.hostname) && isLoopback(other.hostname));
}

function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

function webPlace(url: string): Place | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  const secure = protocol === "https:";
  return { hostname, port: port || (secure ? "443" : "80"), secure };
}

function grpcPlace({ authority, secure }: GrpcAddress): Place {
  const colon = authority.lastIndexOf(":");
  return { hostname: authority.slice(0, colon), port: authority.slice(colon + 1), secure };
}

function toOrigin(text: string): Place {
  const place = webPlace(text.includes("://") ? text : `https://${text}`);
  if (place === undefined) throw new TypeError(`"${text}" is no origin; write https://host or https://host:port.`);
  return place;
}
