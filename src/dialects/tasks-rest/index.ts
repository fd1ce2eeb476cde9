import type { Dialect } from "../contract.ts";
import { http } from "./bind-http.ts";
import { readCard } from "./call-card.ts";
import { httpCalling } from "./call-http.ts";
import { can } from "./can.ts";
import { CARD_PATH, toCardDocument } from "./card.ts";
import { LOSSES } from "./losses.ts";
import { DIALECT_NAME, VERSION } from "./version.ts";

/** Tasks over plain HTTP, as chains of writing agents speak it. Its own card is the only one that tells of it. */
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
