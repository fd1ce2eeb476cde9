import type { CallableDialect, Dialect, DialectTools } from "../../../../core/dialects/contract.ts";
import { can } from "../../codec/abilities.ts";
import { httpCalling } from "../../codec/call/call-http.ts";
import { cardOf, DIALECT_NAME } from "../../codec/card.ts";
import { LOSSES } from "../../codec/http-losses.ts";
import { createHttpServing, type XiaoyiHttpOptions } from "./bind-http.ts";

export { DIALECT_NAME } from "../../codec/card.ts";
export type { Access, Bindings, Entry } from "./options.ts";

/** Huawei's assistant Xiaoyi, calling over HTTP. No card is published for it: the URL is entered in its console. */
export const xiaoyiHttp: CallableDialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(LOSSES),
  calling: [httpCalling],
  cardOf,
  credentialHint: "Set A2ACLI_ACCESS_KEY and A2ACLI_SECRET_KEY to sign requests, or A2ACLI_BEARER for an API key.",
};

export function createXiaoyiHttp(
  { clock, log }: Pick<DialectTools, "clock" | "log">,
  settings: Pick<XiaoyiHttpOptions, "entriesFor">,
): Dialect {
  return { ...xiaoyiHttp, serving: { http: createHttpServing({ clock, log, ...settings }) } };
}
