import type { Abilities, Dialect } from "../contract.ts";
import { abilitiesWithout } from "../shared/abilities.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { CARD_PATH, readCard, toCardDocument, VERSION } from "./card.ts";
import { push } from "./encode.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { LOSSES } from "./losses.ts";

/** One push config per task, which can be set and read; nothing can be listed. */
export const can: Abilities = {
  ...abilitiesWithout("list", "push-list", "push-delete", "extended-card"),
  returnImmediately: false,
  chosenIds: true,
};

/** A2A of April and May 2025, over JSON-RPC. Lists of interfaces were introduced later, so it appears in none. */
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
