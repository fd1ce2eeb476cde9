import type { ExchangeRequest } from "../wire/exchange.ts";

const VERSION_FORM = /^(\d+\.\d+)(?:\.\d+)?$/;

/** `Major.Minor` the caller asks for, by header or query; undefined when it asks for none. The patch part never matters. */
export function namedVersion(exchange: Pick<ExchangeRequest, "headers" | "query">): string | undefined {
  const header = exchange.headers["a2a-version"]?.trim();
  if (header === "1.0") return header;
  const named = header || (exchange.query === "" ? "" : (new URLSearchParams(exchange.query).get("A2A-Version") ?? ""));
  if (named === "") return undefined;
  return VERSION_FORM.exec(named)?.[1] ?? named.slice(0, 32);
}
