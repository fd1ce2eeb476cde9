/** Connecting to the address that was checked, and to no other. */

import { lookup as systemLookup } from "node:dns/promises";
import type { Agent, buildConnector } from "undici";
import { GuardedFetchError } from "./errors.ts";
import {
  type Address,
  createTargetPolicy,
  isSameAddress,
  parseAddress,
  type TargetPolicy,
  type TargetPolicyOptions,
} from "./target-policy.ts";

/** All addresses of a name. */
type Lookup = (hostname: string) => Promise<readonly string[]>;

export interface ConnectionOptions extends TargetPolicyOptions {
  /** All addresses of a name. Default: the system's resolver. */
  readonly lookup?: Lookup;
}

interface GuardedConnectOptions {
  readonly policy: TargetPolicy;
  readonly timeoutMs: number;
  readonly lookup?: Lookup | undefined;
}

const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECT_MS = 10_000;
/** Connections are kept for the next request to the same place, but not for long: names move. */
const KEEP_ALIVE_MS = 4_000;

/** What may be reached, and the connections to it. `timeoutMs` bounds connecting, which never takes longer than 10 s. */
export function guardConnections(options: ConnectionOptions, timeoutMs = MAX_CONNECT_MS) {
  const policy = createTargetPolicy(options);
  const connecting = { policy, timeoutMs: Math.min(timeoutMs, MAX_CONNECT_MS), lookup: options.lookup };
  let opening: Promise<Agent> | undefined;
  const openAgent = (): Promise<Agent> => {
    opening ??= createAgent(connecting);
    return opening;
  };
  return { policy, openAgent };
}

/** The library is loaded when it is first needed: many who can fetch never do. */
async function createAgent(options: GuardedConnectOptions): Promise<Agent> {
  const { Agent, buildConnector } = await import("undici");
  return new Agent({
    connect: createGuardedConnector(buildConnector({ timeout: options.timeoutMs }), options),
    // The whole time is bounded by those who request, so that the library's own limits on parts of it would only be in the way.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });
}

const lookupBySystem: Lookup = async (hostname) => {
  const found = await systemLookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
};

/** `connect` is the library's own connector, which connects to any address. */
function createGuardedConnector(
  connect: buildConnector.connector,
  options: GuardedConnectOptions,
): buildConnector.connector {
  const { policy, lookup = lookupBySystem } = options;

  /** One name may have good and bad addresses in one answer: that is an attempt, so that none of them is used. */
  async function addressesOf(hostname: string): Promise<readonly Address[]> {
    const literal = parseAddress(hostname);
    const addresses =
      literal === undefined ? (await withTimeout(options.timeoutMs, lookup(hostname))).map(parseAddress) : [literal];
    if (addresses.length === 0) throw new GuardedFetchError("unreachable");
    return addresses.map((address) => {
      if (address === undefined || !policy.permits(address, hostname)) throw new GuardedFetchError("forbidden-target");
      return address;
    });
  }

  /** By the address itself, so that the name is not resolved again; the certificate is still checked for the name. */
  function connectTo(address: Address, wanted: buildConnector.Options): Promise<ConnectedSocket> {
    const servername = parseAddress(wanted.hostname) === undefined ? { servername: wanted.hostname } : {};
    const options = { ...wanted, hostname: address.toString(), ...servername };
    return new Promise((resolve, reject) => {
      connect(options, (...[error, socket]: buildConnector.CallbackArgs) => {
        if (error !== null) {
          reject(error);
          return;
        }
        const peer = parseAddress(socket.remoteAddress ?? "");
        if (peer !== undefined && isSameAddress(peer, address) && policy.permits(peer, wanted.hostname)) {
          resolve(socket);
          return;
        }
        socket.destroy();
        reject(new GuardedFetchError("forbidden-target"));
      });
    });
  }

  async function connectToAny(wanted: buildConnector.Options): Promise<ConnectedSocket> {
    let failure: unknown;
    for (const address of await addressesOf(wanted.hostname)) {
      try {
        return await connectTo(address, wanted);
      } catch (error) {
        if (error instanceof GuardedFetchError) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  return (wanted, callback) => {
    connectToAny(wanted).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(toConnectError(error), null),
    );
  };
}

type ConnectedSocket = NonNullable<buildConnector.CallbackArgs[1]>;

function toConnectError(error: unknown): Error {
  return error instanceof GuardedFetchError ? error : new GuardedFetchError("unreachable", { cause: error });
}

/** A resolver that never answers must not hold a connection's place for ever. */
function withTimeout<T>(milliseconds: number, wanted: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new GuardedFetchError("timeout")), milliseconds);
    wanted.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
