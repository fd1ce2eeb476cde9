import type { ExchangeTrace } from "../client/options.ts";
import type { Output } from "./output.ts";
import type { Settings } from "./settings.ts";
import { safeText } from "./text-form.ts";

const REDACTED = "[redacted]";
/** A shorter service parameter is no credential, and replacing it everywhere would garble the log. */
const SHORTEST_HIDDEN_PARAMETER = 6;

/** Replaces what the user gave as credentials wherever it turns up, also where an agent echoes it. */
export function createRedactor(settings: Pick<Settings, "bearer" | "apiKey" | "svcParam">): (text: string) => string {
  const secrets = [
    settings.bearer,
    settings.apiKey,
    ...settings.svcParam.map(([, value]) => (value.length < SHORTEST_HIDDEN_PARAMETER ? undefined : value)),
  ].flatMap((secret) => (secret === undefined ? [] : [secret, encodeURIComponent(secret)]));
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
}

/** The exchange for `--debug`: what was sent and what came back, with the time since the request. */
export function createExchangeLog(output: Output, redact: (text: string) => string): (trace: ExchangeTrace) => void {
  let started = performance.now();
  const say = (line: string): void => output.talk(output.dim(redact(safeText(line))));
  return (trace) => {
    const sign = trace.direction === "request" ? ">" : "<";
    if (trace.direction === "request") {
      started = performance.now();
      say(`> ${trace.method ?? ""} ${trace.url ?? ""}`);
    } else {
      say(`< ${trace.status ?? ""} (${Math.round(performance.now() - started)} ms)`);
    }
    for (const [name, value] of Object.entries(trace.headers)) say(`${sign} ${name}: ${value}`);
    if (trace.body !== undefined && trace.body !== "") for (const line of trace.body.split("\n")) say(`${sign} ${line}`);
  };
}
