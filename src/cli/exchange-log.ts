import type { ExchangeTrace } from "../client/options.ts";
import { RPC_CODES } from "../wire/rpc.ts";
import type { Output } from "./output.ts";
import { safeText } from "./text-form.ts";

/** The exchange for `--debug`: what was sent and what came back, with the time since the request. */
export function createExchangeLog(output: Output): (trace: ExchangeTrace) => void {
  let started = performance.now();
  const say = (line: string): void => output.talk(output.dim(safeText(line)));
  return (trace) => {
    const sign = trace.direction === "request" ? ">" : "<";
    if (trace.direction === "request") {
      started = performance.now();
      say(`> ${trace.method ?? ""} ${trace.url ?? ""}`);
    } else {
      say(`< ${statusOf(trace)} (${Math.round(performance.now() - started)} ms)`);
    }
    for (const [name, value] of Object.entries(trace.headers)) say(`${sign} ${name}: ${value}`);
    if (trace.body !== undefined && trace.body !== "")
      for (const line of trace.body.split("\n")) say(`${sign} ${line}`);
  };
}

/** The codes of gRPC are better known by their names. */
function statusOf({ method, status }: ExchangeTrace): string {
  const name = method === "gRPC" ? Object.entries(RPC_CODES).find(([, code]) => code === status)?.[0] : undefined;
  return `${status ?? ""}${name === undefined ? "" : ` ${name}`}`;
}
