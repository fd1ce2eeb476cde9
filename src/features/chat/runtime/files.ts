/** Files that participants send to the agent. */

import type { Part } from "../../../core/model/message.ts";
import type { Clock } from "../../../core/model/ports.ts";
import type { PostFile } from "../../../core/wire/channel.ts";
import { decodeFile } from "../a2a-lite/decode.ts";

const MAX_FILES = 20;
/** Maximum size of all files of a message together. */
const MAX_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** A file that cannot be read is replaced by a text that says so. */
export async function readFiles(files: readonly PostFile[], clock: Pick<Clock, "after">): Promise<readonly Part[]> {
  const controller = new AbortController();
  const cancel = clock.after(TIMEOUT_MS, () => controller.abort());
  // For those that do not heed the signal.
  const aborted = new Promise<undefined>((resolve) => {
    controller.signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const parts: Part[] = [];
  let left = MAX_BYTES;
  for (const [index, file] of files.entries()) {
    const bytes =
      index < MAX_FILES ? await Promise.race([readFile(file, left, controller.signal), aborted]) : undefined;
    left -= bytes?.length ?? 0;
    if (bytes === undefined) parts.push({ text: `(The file ${file.name} could not be read.)` });
    else parts.push(decodeFile(file, bytes));
  }
  cancel();
  return parts;
}

async function readFile(file: PostFile, maxBytes: number, signal: AbortSignal): Promise<Uint8Array | undefined> {
  if ((file.size ?? 0) > maxBytes || signal.aborted) return undefined;
  const bytes = await file.read(maxBytes, signal).catch(() => undefined);
  return bytes !== undefined && bytes.length <= maxBytes ? bytes : undefined;
}
