import type { CallableDialect, Dialect, DialectTools } from "../../../core/dialects/contract.ts";
import { can } from "../shared/abilities.ts";
import { createHttpServing, type XiaoyiHttpOptions } from "./bind-http.ts";
import { httpCalling } from "./call-http.ts";
import { cardOf, DIALECT_NAME } from "./card.ts";
import { LOSSES } from "./losses.ts";

export { DIALECT_NAME } from "./card.ts";
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
