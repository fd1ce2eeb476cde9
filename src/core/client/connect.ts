import { createTlsFetch, withoutCertificate } from "../auth/login/client-certificate.ts";
import { loadExtensions } from "../extension/installed.ts";
import type { AgentCard } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import { type Loss, refusedLosses } from "../model/loss.ts";
import { rejectUnknownKeys } from "../model/suggestions.ts";
import { canParseUrl } from "../model/url.ts";
import type { Exchanger } from "../wire/exchange.ts";
import { type AgentCaller, createAgentCaller } from "./call/agent-caller.ts";
import { Endpoints } from "./call/failover.ts";
import { createRemoteAgent } from "./call/remote-agent.ts";
import { type Candidate, chooseInterfaces } from "./card/choose-interface.ts";
import { type FetchedCard, fetchCard, toCard } from "./card/fetch-card.ts";
import { describeVerification, readVerifiedCard, requireTrustedCard } from "./card/verify-card.ts";
import { findAddressKind } from "./dialects.ts";
import {
  type ChosenInterface,
  CONNECT_OPTIONS,
  type ConnectOptions,
  DEFAULT_POLLING,
  DEFAULT_REQUEST_RETRY,
  DEFAULT_STREAM_RETRY,
  DEFAULT_STREAM_SILENCE_MS,
  DEFAULT_TIMEOUT_MS,
  type Notice,
  type RemoteAgent,
} from "./options.ts";
import { trackHops } from "./run-hops.ts";
import { createAuthenticatedCarrier, createAuthenticatedExchanger, lowerCaseNames } from "./transport/authenticate.ts";
import { createCallExchanger, createCredentialGate, followRedirects } from "./transport/credential-origins.ts";
import { createGrpcCarrier, sharedGrpcCarrier } from "./transport/grpc-carrier.ts";
import { createGrpcTransport } from "./transport/grpc-transport.ts";
import { createHttpTransport } from "./transport/http-transport.ts";
import { createTracer } from "./transport/trace.ts";
import type { Transport, TransportSetup } from "./transport/transport.ts";

export type { Exchanger };

/**
 * Finds the card and chooses an interface. `target` as for `fetchCard`, a card, or the address of a participant of a
 * chat room.
 */
export async function connect(target: string | AgentCard, options: ConnectOptions = {}): Promise<RemoteAgent> {
  trackHops();
  await loadExtensions("calling");
  const kind = typeof target === "string" ? findAddressKind(target) : undefined;
  if (kind !== undefined) {
    rejectUnknownKeys("connect", options, CONNECT_OPTIONS);
    const { caller, close } = await kind.connect(target as string, options);
    return createRemoteAgent(caller, close);
  }
  return createRemoteAgent(await connectCaller(target, options));
}

/**
 * Like `connect`, for callers that dispatch operations directly and pass hops with each of them. `exchange` makes the calls
 * over HTTP in place of `fetch`, and follows no redirects.
 */
export async function connectCaller(
  target: string | AgentCard,
  options: ConnectOptions = {},
  exchange?: Exchanger,
): Promise<AgentCaller> {
  rejectUnknownKeys("connect", options, CONNECT_OPTIONS);
  await loadExtensions("calling");
  const found = typeof target === "string" ? await fetchCard(target, options) : await readGivenCard(target, options);
  const { card, verification } = found;
  const cardUrl = found.url ?? options.cardUrl;
  const { candidates, passedOver } = chooseInterfaces(card, { ...options, cardUrl });
  const notify = options.onNotice ?? (() => {});
  if (verification !== undefined && verification.status !== "verified") {
    notify({
      kind: "signature",
      message: `The card of "${card.name}" is not verified. ${describeVerification(verification)}`,
    });
  }
  if (passedOver.length > 0) {
    const { binding, version } = candidates[0].interface;
    notify({
      kind: "fallback",
      message: `The agent prefers ${passedOver.join(", ")}; using ${binding} ${version}.`,
    });
  }
  const setup = {
    endpoints: new Endpoints(candidates, createTransportFactory({ ...options, cardUrl }, notify, exchange), notify),
    requestRetry: options.retry ?? DEFAULT_REQUEST_RETRY,
    streamRetry: options.retry ?? DEFAULT_STREAM_RETRY,
    polling: DEFAULT_POLLING,
    notify,
  };
  return createAgentCaller({ card, setup, signal: options.signal, hops: options.hops });
}

async function readGivenCard(
  target: AgentCard,
  options: ConnectOptions,
): Promise<Partial<FetchedCard> & Pick<FetchedCard, "card">> {
  // Serialised to JSON, which drops undefined members.
  const raw = JSON.stringify(target);
  const read = (value: unknown) => toCard(value, "the given object", { ...options, cardUrl: options.cardUrl });
  const card = read(JSON.parse(raw));
  const verification = await requireTrustedCard(raw, options.cardUrl ?? "hand", options);
  return verification === undefined ? { card } : { card: readVerifiedCard(card, verification, read), verification };
}

type TransportOptions = Omit<ConnectOptions, "cardUrl"> & { readonly cardUrl: string | undefined };

function createTransportFactory(
  options: TransportOptions,
  notify: (notice: Notice) => void,
  exchange: Exchanger | undefined,
): (candidate: Candidate) => Transport {
  const headers = lowerCaseNames(options.headers);
  const { authCode, credentials, keys, tls } = options;
  const proves = (credentials ?? keys ?? authCode ?? tls?.cert) !== undefined;
  const hasAny = proves || Object.keys(headers).length > 0;
  const mayHaveCredentials = createCredentialGate(options);
  const { fetch = globalThis.fetch } = options;
  const mayPresent = (url: string) => mayHaveCredentials({ url });
  const plain = {
    exchange:
      exchange === undefined
        ? createCallExchanger(tls === undefined ? fetch : createTlsFetch(fetch, tls, mayPresent))
        : followRedirects(exchange),
    carrier: tls === undefined ? sharedGrpcCarrier() : createGrpcCarrier({ tls: withoutCertificate(tls) }),
  };
  const identified = tls?.cert === undefined ? plain : { ...plain, carrier: createGrpcCarrier({ tls }) };
  const trusted = credentials
    ? {
        exchange: createAuthenticatedExchanger(identified.exchange, credentials),
        carrier: createAuthenticatedCarrier(identified.carrier, credentials),
      }
    : identified;
  const signalled = signalledVersion(options);
  const setup: TransportSetup = {
    headers: { ...signalled, ...headers },
    keys,
    authCode,
    extensions: options.extensions ?? [],
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    streamSilenceMs: options.streamSilenceMs ?? DEFAULT_STREAM_SILENCE_MS,
    tracer: createTracer(options.onExchange, headers),
    report: options.strict === true ? refuseLosses : (losses) => notifyLosses(losses, notify),
    notifyFallback: (message) => notify({ kind: "fallback", message }),
  };
  const notified = new Set<string>();
  const notifyWithheld = ({ url }: ChosenInterface): void => {
    const where = originOf(url);
    if (!notified.has(where)) notify(withheldNotice(where, Object.keys(headers), proves));
    notified.add(where);
  };
  return (candidate) => {
    const { address, calling, interface: chosen } = candidate;
    const isTrusted = !hasAny || mayHaveCredentials({ url: chosen.url, address });
    const own = isTrusted ? setup : { ...setup, headers: signalled, keys: undefined, authCode: undefined };
    const { carrier, exchange } = isTrusted ? trusted : plain;
    const transport =
      address === undefined
        ? createHttpTransport(calling, chosen, exchange, own)
        : createGrpcTransport(calling, chosen, address, carrier, own);
    return isTrusted ? transport : runBeforeEach(transport, () => notifyWithheld(chosen));
  };
}

/** From 1.0 on every request names its version; earlier dialects do only for a caller that requires that version. */
function signalledVersion({ version }: TransportOptions): Readonly<Record<string, string>> {
  return version?.startsWith("0.") === true ? { "a2a-version": version } : {};
}

/** Notifies when a call is made, not when the interface is listed: a card may list many that are never called. */
function runBeforeEach(transport: Transport, before: () => void): Transport {
  return {
    attempt(operation, settings) {
      before();
      return transport.attempt(operation, settings);
    },
    open(operation, settings) {
      before();
      return transport.open(operation, settings);
    },
  };
}

function originOf(url: string): string {
  return /^https?:/i.test(url) && canParseUrl(url) ? new URL(url).origin : url;
}

function withheldNotice(where: string, names: readonly string[], proves: boolean): Notice {
  const headers = names.length === 0 ? [] : [`${names.length === 1 ? "header" : "headers"} ${names.join(", ")}`];
  const what = [...headers, ...(proves ? ["credentials"] : [])].join(" and the ");
  return {
    kind: "credentials",
    message: `The card names an interface at ${where}, which is not the origin of the card: the ${what} will not be sent there. Name that origin in credentialOrigins if you trust it.`,
  };
}

function notifyLosses(losses: readonly Loss[], notify: (notice: Notice) => void): void {
  for (const loss of losses) {
    notify({ kind: "loss", message: `${loss.path} was ${loss.kind}: ${loss.reason}`, loss });
  }
}

function refuseLosses(losses: readonly Loss[]): void {
  const refused = refusedLosses(losses);
  if (refused.length === 0) return;
  const lost = refused.map(({ kind, path, reason }) => `${path} would be ${kind}: ${reason}`);
  throw new ProtocolError("LOSS_REFUSED", `Nothing may be lost (strict), but ${lost.join("; ")}`, {
    violations: refused.map(({ path, reason }) => ({ field: path, description: reason })),
  });
}
