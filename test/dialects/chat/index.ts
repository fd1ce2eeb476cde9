import type { Dialect } from "../../../src/core/dialects/contract.ts";
import { calling } from "./call.ts";
import { serving } from "./serve.ts";

/** Lines of text between people and agents: whole answers, no task ids, a follow-up is the next line. */
export const chat: Dialect = {
  name: "chat",
  can: {
    streaming: false,
    replay: false,
    operations: {
      send: true,
      stream: false,
      get: false,
      list: false,
      cancel: false,
      subscribe: false,
      "push-create": false,
      "push-get": false,
      "push-list": false,
      "push-delete": false,
      "extended-card": false,
    },
    parts: { text: true, raw: false, url: false, data: false },
    artifacts: false,
    returnImmediately: false,
    chosenIds: false,
    inputRequired: false,
    metadata: false,
  },
  losses: [],
  serving,
  calling: [calling],
};
