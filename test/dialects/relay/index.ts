import type { Dialect } from "../../../src/core/dialects/contract.ts";
import { calling } from "./call.ts";
import { serving } from "./serve.ts";

/** For agents that dial a relay and are asked over the line they opened. */
export const relay: Dialect = {
  name: "relay",
  can: {
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
    returnImmediately: false,
    chosenIds: false,
    inputRequired: true,
    metadata: true,
  },
  losses: [],
  serving,
  calling: [calling],
};
