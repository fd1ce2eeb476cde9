/**
 * Carriers that add credentials. They are below the tracer, so that no trace can contain a credential, and above the
 * redirect guard, which removes headers when the origin changes.
 */

import type { CredentialProvider } from "../../auth/login/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../../wire/exchange.ts";
import { RPC_CODES, type RpcCall, RpcStatusError } from "../../wire/rpc.ts";
import { redactUrl } from "../errors.ts";
import type { RpcCarrier, RpcStream } from "./grpc-carrier.ts";
import type { GrpcAddress } from "./grpc-channels.ts";

type Headers = Readonly<Record<string, string>>;

const UNAUTHORIZED = 401;

/** Retries once after a 401 if there are new credentials: an agent that rejects the caller has done nothing. */
export function createAuthenticatedExchanger(exchange: Exchanger, provider: CredentialProvider): Exchanger {
  return async (call) => {
    const { url } = call;
    const query = await askProvider(url, async () => (await provider.queryFor?.(url)) ?? {});
    const given = await askProvider(url, () => provider.headersFor(url));
    const first = await exchange(addCredentials(call, given, query));
    if (first.status !== UNAUTHORIZED) return first;
    let better: Headers | undefined;
    try {
      better = await refreshCredentials(provider, url, given, challengeOf(first));
    } catch (error) {
      first.cancel();
      throw error;
    }
    if (better === undefined) {
      provider.onUnauthorized?.(url, challengeOf(first) ?? "");
      return first;
    }
    first.cancel();
    const second = await exchange(addCredentials(call, better, query));
    if (second.status === UNAUTHORIZED) provider.onUnauthorized?.(url, challengeOf(second) ?? "");
    return second;
  };
}

/** Sends no credentials until the server requests them. */
export function createChallengedExchanger(exchange: Exchanger, provider: CredentialProvider): Exchanger {
  const authenticated = createAuthenticatedExchanger(exchange, provider);
  return async (call) => {
    const answer = await exchange(call);
    if (answer.status !== UNAUTHORIZED) return answer;
    answer.cancel();
    return authenticated(call);
  };
}

/** An error of the provider is an authentication error, not a connection error. */
async function askProvider<T>(url: string, get: () => Promise<T>): Promise<T> {
  try {
    return await get();
  } catch (cause) {
    if (ProtocolError.is(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ProtocolError("UNAUTHENTICATED", `No credentials for ${redactUrl(url)}: ${why}`, { cause });
  }
}

function challengeOf(answer: ExchangeAnswer): string | undefined {
  return answer.headers.get("www-authenticate") ?? undefined;
}

/** Undefined if the provider has no credentials other than the rejected ones. */
async function refreshCredentials(
  provider: CredentialProvider,
  url: string,
  given: Headers,
  challenge: string | undefined,
): Promise<Headers | undefined> {
  const refusal = { headers: given, ...(challenge === undefined ? {} : { challenge }) };
  const better = await askProvider(url, () => provider.headersFor(url, refusal));
  return Object.entries(better).some(([name, value]) => given[name] !== value) ? better : undefined;
}

/** Headers and query parameters of the call take precedence. */
function addCredentials(call: ExchangeCall, headers: Headers, query: Headers): ExchangeCall {
  const url = new URL(call.url);
  for (const [name, value] of Object.entries(query)) if (!url.searchParams.has(name)) url.searchParams.set(name, value);
  return { ...call, url: url.href, headers: { ...lowerCaseNames(headers), ...lowerCaseNames(call.headers) } };
}

export function createAuthenticatedCarrier(carrier: RpcCarrier, provider: CredentialProvider): RpcCarrier {
  /** New credentials in place of the rejected ones; rethrows the error if there are none. */
  async function after(error: unknown, url: string, given: Headers): Promise<Headers> {
    if (!isUnauthenticated(error)) throw error;
    const better = await refreshCredentials(provider, url, given, challengeOfStatus(error));
    if (better === undefined) throw reportRefusal(error, url);
    return better;
  }

  function reportRefusal(error: unknown, url: string): unknown {
    if (isUnauthenticated(error)) provider.onUnauthorized?.(url, challengeOfStatus(error) ?? "");
    return error;
  }

  return {
    async unary(address, call, options) {
      const url = urlOf(address, call);
      const given = await askProvider(url, () => provider.headersFor(url));
      try {
        return await carrier.unary(address, addMetadata(call, given), options);
      } catch (error) {
        const better = await after(error, url, given);
        return carrier.unary(address, addMetadata(call, better), options).catch((again: unknown) => {
          throw reportRefusal(again, url);
        });
      }
    },
    stream(address, call, options) {
      const url = urlOf(address, call);
      let open: RpcStream | undefined;
      let cancelled = false;

      async function* messages(): AsyncGenerator<readonly Uint8Array[], void, undefined> {
        const given = await askProvider(url, () => provider.headersFor(url));
        let better: Headers | undefined;
        let begun = false;
        while (!cancelled) {
          open = carrier.stream(address, addMetadata(call, better ?? given), options);
          try {
            for await (const batch of open.messages) {
              begun = true;
              yield batch;
            }
            return;
          } catch (error) {
            if (better !== undefined) throw reportRefusal(error, url);
            // A message was received, so the agent accepted the call, which must not be repeated.
            if (begun) throw error;
            better = await after(error, url, given);
          }
        }
      }

      const all = messages();
      return {
        messages: all,
        cancel() {
          cancelled = true;
          open?.cancel();
          void all.return();
        },
      };
    },
  };
}

function challengeOfStatus(error: RpcStatusError): string | undefined {
  return error.status.metadata?.["www-authenticate"];
}

function isUnauthenticated(error: unknown): error is RpcStatusError {
  return error instanceof RpcStatusError && error.status.code === RPC_CODES.UNAUTHENTICATED;
}

function urlOf({ authority, secure }: GrpcAddress, { method, service }: RpcCall): string {
  return `${secure ? "https" : "http"}://${authority}/${service}/${method}`;
}

function addMetadata(call: RpcCall, headers: Headers): RpcCall {
  return { ...call, metadata: { ...lowerCaseNames(headers), ...lowerCaseNames(call.metadata) } };
}

/** Lower-cases names, so that two spellings of a name are one header. */
export function lowerCaseNames(headers: Headers = {}): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
