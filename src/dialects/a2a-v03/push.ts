import type { PushEncoding } from "../contract.ts";
import { toWireTask } from "./encode.ts";

/** The whole task each time, in the words of JSON-RPC also for those who registered over another carrier. */
export const push: PushEncoding = {
  wholeTask: true,
  async encode(_, task) {
    return { contentType: "application/json", body: JSON.stringify(toWireTask(await task())) };
  },
};
