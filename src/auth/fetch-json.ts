/** Documents of an authorization server: small JSON, over whichever fetch the server was given. */

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;

export class DocumentError extends Error {
  override readonly name = "DocumentError";
}

export async function fetchJson(fetch: Fetch, url: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new DocumentError(`${url} answered with HTTP status ${response.status}.`);
  }
  const value = parse(await readText(response, url));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new DocumentError(`${url} is not a JSON object.`);
  }
  return value as Readonly<Record<string, unknown>>;
}

async function readText(response: Response, url: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new DocumentError(`${url} is larger than ${MAX_BYTES} bytes.`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
