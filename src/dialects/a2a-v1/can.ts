import type { Abilities } from "../contract.ts";

/** The model is this dialect's own, so there is nothing it cannot say. */
export const can: Abilities = {
  streaming: true,
  replay: true,
  operations: {
    send: true,
    stream: true,
    get: true,
    list: true,
    cancel: true,
    subscribe: true,
    "push-create": true,
    "push-get": true,
    "push-list": true,
    "push-delete": true,
    "extended-card": true,
  },
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: true,
};
