import type { Loss } from "../../model/loss.ts";
import type { PushEncoding } from "../contract.ts";
import { toTask } from "./said.ts";

/** 0.1 never said what is told; the task itself is what its callers can read. */
export const push: PushEncoding = {
  wholeTask: true,
  async encode(_, task, report) {
    const losses: Loss[] = [];
    const body = JSON.stringify(toTask(await task(), losses));
    if (losses.length > 0) report(losses);
    return { contentType: "application/json", body };
  },
};
