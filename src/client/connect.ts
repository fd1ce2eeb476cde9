import type { AgentCard } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import { createFetchExchanger } from "../wire/fetch-exchange.ts";
import { createCaller } from "./caller.ts";
import { type Candidate, chooseInterfaces } from "./choose-interface.ts";
import { createExchangeTransport } from "./exchange-transport.ts";
import { fetchCard, toCard } from "./fetch-card.ts";
import { sharedGrpcCarrier } from "./grpc-carrier.ts";
import { lowerCaseNames } from "./headers.ts";
import {
  type ConnectOptions,
  DEFAULT_POLLING,
  DEFAULT_REQUEST_RETRY,
  DEFAULT_STREAM_RETRY,
  DEFAULT_STREAM_SILENCE_MS,
  DEFAULT_TIMEOUT_MS,
  type Notice,
  type RemoteAgent,
} from "./options.ts";
import { createRedirectGuard } from "./redirects.ts";
import { createRemoteAgent } from "./remote-agent.ts";
import { Lines } from "./route.ts";
import { createRpcTransport } from "./rpc-transport.ts";
import { createTracer } from "./trace.ts";
import type { Transport, TransportSetup } from "./transport.ts";

/** Finds the card, chooses an interface and is ready to call. `target` as for `fetchCard`, or a card. */
export async function connect(target: string | AgentCard, options: ConnectOptions = {}): Promise<RemoteAgent> {
  const found = typeof target === "string" ? await fetchCard(target, options) : undefined;
  const cardUrl = found?.url ?? options.cardUrl;
  // Through JSON, where a member that is undefined is simply not there.
  const card = found?.card ?? toCard(JSON.parse(JSON.stringify(target)), "the given object", { ...options, cardUrl });
  const { candidates, passedOver } = chooseInterfaces(card, { ...options, cardUrl });
  const notify = options.onNotice ?? (() => {});
  if (passedOver.length > 0) {
    const { binding, version } = candidates[0].interface;
    notify({
      kind: "fallback",
      message: `The agent prefers ${passedOver.join(", ")}; using ${binding} ${version}.`,
    });
  }
  const caller = createCaller({
    lines: new Lines(candidates, transportsFor(options, notify), notify),
    requestRetry: options.retry ?? DEFAULT_REQUEST_RETRY,
    streamRetry: options.retry ?? DEFAULT_STREAM_RETRY,
    polling: DEFAULT_POLLING,
    notify,
  });
  return createRemoteAgent({ card, caller, signal: options.signal });
}

function transportsFor(options: ConnectOptions, notify: (notice: Notice) => void): (candidate: Candidate) => Transport {
  const headers = lowerCaseNames(options.headers);
  const exchange = createFetchExchanger(createRedirectGuard(options.fetch ?? globalThis.fetch));
  const setup: TransportSetup = {
    headers,
    extensions: options.extensions ?? [],
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    streamSilenceMs: options.streamSilenceMs ?? DEFAULT_STREAM_SILENCE_MS,
    tracer: createTracer(options.onExchange, headers),
    report: options.strict === true ? refuseLosses : (losses) => tellLosses(losses, notify),
    tellFallback: (message) => notify({ kind: "fallback", message }),
  };
  return (candidate) =>
    candidate.address === undefined
      ? createExchangeTransport(candidate.calling, candidate.interface, exchange, setup)
      : createRpcTransport(candidate.calling, candidate.interface, candidate.address, sharedGrpcCarrier(), setup);
}

function tellLosses(losses: readonly Loss[], notify: (notice: Notice) => void): void {
  for (const loss of losses) {
    notify({ kind: "loss", message: `${loss.path} was ${loss.kind}: ${loss.reason}`, loss });
  }
}

function refuseLosses(losses: readonly Loss[]): void {
  if (losses.length === 0) return;
  const lost = losses.map(({ kind, path, reason }) => `${path} would be ${kind}: ${reason}`);
  throw new ProtocolError("LOSS_REFUSED", `Nothing may be lost (strict), but ${lost.join("; ")}`, {
    violations: losses.map(({ path, reason }) => ({ field: path, description: reason })),
  });
}
