import type { Abilities } from "../contract.ts";

/** Tasks cannot be listed; all else of 1.0 has a place, if need be in metadata. */
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
