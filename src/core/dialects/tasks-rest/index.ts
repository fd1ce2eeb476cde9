import type { Abilities, Dialect } from "../contract.ts";
import { abilitiesWithout } from "../shared/abilities.ts";
import { http } from "./bind-http.ts";
import { httpCalling } from "./call-http.ts";
import { CARD_PATH, readCard, toCardDocument, VERSION } from "./card.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { LOSSES } from "./losses.ts";

/** Cancelling and subscribing are our additions: other agents may not support them. */
export const can: Abilities = {
  ...abilitiesWithout("list", "push-create", "push-get", "push-list", "push-delete", "extended-card"),
  returnImmediately: false,
};

/** Tasks over plain HTTP, as used by chains of writing agents. Only its own card lists it. */
export const tasksRest: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(LOSSES),
  serving: {
    cards: [{ path: CARD_PATH, version: VERSION, document: toCardDocument }],
    http: [http],
  },
  calling: [httpCalling],
  readCard,
};
