import type { Dialect } from "../contract.ts";
import { can } from "../xiaoyi/abilities.ts";
import { createHttpServing, type XiaoyiHttpOptions } from "./bind-http.ts";
import { httpCalling } from "./call-http.ts";
import { cardOf, DIALECT_NAME } from "./card.ts";
import { LOSSES } from "./losses.ts";

export type { XiaoyiHttpOptions } from "./bind-http.ts";
export { DIALECT_NAME } from "./card.ts";
export type { Access, Accounts, Bindings, Entry } from "./options.ts";

/** Huawei's assistant Xiaoyi, calling over HTTP. Nobody publishes cards for it: its console is told the address. */
export function createXiaoyiHttp(options: XiaoyiHttpOptions): Dialect {
  return {
    name: DIALECT_NAME,
    can,
    losses: Object.values(LOSSES),
    serving: { http: createHttpServing(options) },
    calling: [httpCalling],
    cardOf,
  };
}
