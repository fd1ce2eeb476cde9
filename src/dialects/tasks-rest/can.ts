import type { Abilities } from "../contract.ts";

/** Cancelling and subscribing are ours: agents of others may not know them. */
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
