import { createGuardedFetch } from "../../core/auth/guarded-fetch/guarded-fetch.ts";
import type { Log } from "../../core/model/ports.ts";
import { systemTools } from "../../core/server/clock-and-ids.ts";
import type { LlmHost } from "./options.ts";

/** The model's address is named by the operator; those of files in messages are not, so they are guarded. */
export function createLlmHost(maxFileBytes: number, log: Log): LlmHost {
  const fetchFile = createGuardedFetch({ maxBytes: maxFileBytes });
  return {
    ...systemTools,
    fetch: globalThis.fetch,
    log,
    async readFile(url, signal) {
      const response = await fetchFile(url, { signal });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      const mediaType = response.headers.get("content-type") ?? undefined;
      return { bytes: new Uint8Array(await response.arrayBuffer()), mediaType };
    },
  };
}
