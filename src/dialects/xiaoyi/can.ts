import type { Abilities } from "../contract.ts";

/** A task is followed by the one stream that its message is answered with; it cannot be looked at later. */
export const can: Abilities = {
  streaming: true,
  replay: false,
  operations: {
    send: true,
    stream: true,
    get: false,
    list: false,
    cancel: true,
    subscribe: false,
    "push-create": false,
    "push-get": false,
    "push-list": false,
    "push-delete": false,
    "extended-card": false,
  },
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: false,
};
