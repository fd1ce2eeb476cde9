import { readAtMost } from "./read-at-most.ts";

/** Downloads a file of a post. Rejects if it is larger than `maxBytes`, whatever size was announced. */
export async function download(url: string, { headers = {}, maxBytes, signal }: DownloadOptions): Promise<Uint8Array> {
  // An address may have a token in it, and so may the errors of fetch: neither is shown.
  const response = await fetch(url, { headers, redirect: "error", ...(signal === undefined ? {} : { signal }) }).catch(
    () => undefined,
  );
  signal?.throwIfAborted();
  if (response === undefined) throw new Error("The file could not be downloaded: the network did not answer.");
  if (!response.ok || response.body === null) {
    throw new Error(`The file could not be downloaded: the network answered with status ${response.status}.`);
  }
  return await readAtMost(response.body, maxBytes);
}

interface DownloadOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
}
