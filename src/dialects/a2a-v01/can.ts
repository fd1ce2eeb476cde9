import type { Abilities } from "../contract.ts";

/** One push config for each task, which is set and read; nothing can be listed. */
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
    "push-list": false,
    "push-delete": false,
    "extended-card": false,
  },
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: true,
};
