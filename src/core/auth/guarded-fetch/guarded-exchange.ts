/** Calls to targets named by others, without the `Request`, `Response` and web streams of a guarded fetch. */

import type { Agent } from "undici";
import type { Exchanger } from "../../wire/exchange.ts";
import { createExchanger, type ExchangerOptions } from "../../wire/fetch-exchange.ts";
import { type ConnectionOptions, guardConnections } from "./connect.ts";
import { decodeBody } from "./decode-body.ts";
import { IncomingAnswer } from "./incoming-answer.ts";

/** Redirects are answers. Calls are bounded in time and size as with every exchanger; streams have no limits. */
export function createGuardedExchanger(options: ConnectionOptions, limits?: ExchangerOptions): Exchanger {
  const { policy, openAgent } = guardConnections(options);
  let agent: Agent | undefined;
  // Most calls go to the URL of the call before.
  let checked = { target: "", origin: "", path: "" };

  return createExchanger(async ({ body, headers, method, url: target }, stop) => {
    if (target !== checked.target) {
      const { origin, pathname, search } = policy.check(target);
      checked = { target, origin, path: pathname + search };
    }
    const { origin, path } = checked;
    agent ??= await openAgent();
    const answer = new IncomingAnswer();
    stop.onStop = () => answer.abort(undefined);
    const outgoing = outgoingHeaders(headers);
    if (stop.reason !== undefined) answer.abort(undefined);
    else agent.dispatch({ origin, path, method, headers: outgoing, body: body ?? null }, answer);
    await answer.head;
    return { status: answer.status, headers: answer.headers, body: decodeBody(answer) };
  }, limits);
}

/** Headers of the connection are not the caller's to set; compression is not asked for. */
const CONNECTION_HEADERS = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export function outgoingHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const outgoing: Record<string, string> = { accept: "*/*", "accept-encoding": "identity" };
  for (const given of Object.keys(headers)) {
    const name = given.toLowerCase();
    if (!CONNECTION_HEADERS.has(name)) outgoing[name] = headers[given] as string;
  }
  return outgoing;
}
