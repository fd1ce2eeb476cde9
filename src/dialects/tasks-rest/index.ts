import type { Abilities, Dialect } from "../contract.ts";
import { http } from "./bind-http.ts";
import { httpCalling } from "./call-http.ts";
import { CARD_PATH, DIALECT_NAME, readCard, toCardDocument, VERSION } from "./card.ts";
import { LOSSES } from "./losses.ts";

/** Cancelling and subscribing are our additions: other agents may not support them. */
export const can: Abilities = {
  streaming: true,
  replay: true,
  operations: {
    send: true,
    stream: true,
    get: true,
    list: false,
    cancel: true,
    subscribe: true,
    "push-create": false,
    "push-get": false,
    "push-list": false,
    "push-delete": false,
    "extended-card": false,
  },
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: true,
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
