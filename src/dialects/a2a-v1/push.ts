import type { PushEncoding } from "../contract.ts";

/** One stream response for each event, as a stream would show it, whatever carrier the task came over. */
export const push: PushEncoding = {
  wholeTask: false,
  async encode({ json }) {
    return { contentType: "application/a2a+json", body: json };
  },
};
