import type { AgentCard } from "../model/card.ts";
import { createFetchExchanger } from "../wire/fetch-exchange.ts";
import { createCaller } from "./caller.ts";
import { chooseInterface } from "./choose-interface.ts";
import { fetchCard, toCard } from "./fetch-card.ts";
import { lowerCaseNames } from "./headers.ts";
import {
  type ConnectOptions,
  DEFAULT_REQUEST_RETRY,
  DEFAULT_STREAM_RETRY,
  DEFAULT_STREAM_SILENCE_MS,
  DEFAULT_TIMEOUT_MS,
  type RemoteAgent,
} from "./options.ts";
import { createRedirectGuard } from "./redirects.ts";
import { createRemoteAgent } from "./remote-agent.ts";
import { createTracer } from "./trace.ts";

/** Finds the card, chooses an interface and is ready to call. `target` as for `fetchCard`, or a card. */
export async function connect(target: string | AgentCard, options: ConnectOptions = {}): Promise<RemoteAgent> {
  const found = typeof target === "string" ? await fetchCard(target, options) : undefined;
  // Through JSON, where a member that is undefined is simply not there.
  const card = found?.card ?? toCard(JSON.parse(JSON.stringify(target)), "the given object");
  const choice = chooseInterface(card, { binding: options.binding, cardUrl: found?.url });
  const notify = options.onNotice ?? (() => {});
  if (choice.passedOver.length > 0) {
    notify({
      kind: "fallback",
      message: `The agent prefers ${choice.passedOver.join(", ")}; using ${choice.interface.binding} ${choice.interface.version}.`,
    });
  }
  const headers = lowerCaseNames(options.headers);
  const caller = createCaller({
    calling: choice.calling,
    interface: choice.interface,
    headers,
    extensions: options.extensions ?? [],
    exchange: createFetchExchanger(createRedirectGuard(options.fetch ?? globalThis.fetch)),
    tracer: createTracer(options.onExchange, headers),
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    streamSilenceMs: options.streamSilenceMs ?? DEFAULT_STREAM_SILENCE_MS,
    requestRetry: options.retry ?? DEFAULT_REQUEST_RETRY,
    streamRetry: options.retry ?? DEFAULT_STREAM_RETRY,
    notify,
  });
  return createRemoteAgent({ card, caller, signal: options.signal });
}
