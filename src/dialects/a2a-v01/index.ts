import type { Dialect } from "../contract.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { readCard } from "./call-card.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { can } from "./can.ts";
import { CARD_PATH, toCardDocument } from "./card.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { LOSSES } from "./losses.ts";
import { push } from "./push.ts";
import { VERSION } from "./version.ts";

/** A2A as it was in April and May 2025, over JSON-RPC. Lists of interfaces came later, so that it is in none. */
export const a2aV01: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(LOSSES),
  serving: {
    cards: [{ path: CARD_PATH, version: VERSION, document: toCardDocument }],
    jsonRpc,
    push,
  },
  calling: [jsonRpcCalling],
  readCard,
};
