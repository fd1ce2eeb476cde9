/** A `fetch` that never carries a caller's credentials or message to a host the caller did not name. */

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5;

/** Header names that say nothing about the caller and may go to any host. */
const HARMLESS = new Set(["accept", "a2a-version", "if-none-match"]);

export class RedirectError extends Error {
  override readonly name = "RedirectError";
  readonly advice: string;

  constructor(message: string, advice: string) {
    super(message);
    this.advice = advice;
  }
}

/**
 * The platform's own redirects drop `Authorization` across hosts, but keep every other header that may hold a key.
 * Within one origin redirects are followed as usual; across origins only a GET is, stripped of all that is not
 * harmless; a POST never is, since its body is the caller's message.
 */
export function createRedirectGuard(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init = {}) => {
    if (typeof input !== "string") return fetch(input, { ...init, redirect: "manual" });
    let { url, options } = withoutUserInfo(input, { ...init, redirect: "manual" });
    for (let hops = 0; ; hops++) {
      const response = await fetch(url, options);
      const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
      if (location === null) return response;
      await response.body?.cancel();
      if (hops === MAX_REDIRECTS) {
        throw new RedirectError(`it redirected more than ${MAX_REDIRECTS} times`, "Check the address.");
      }
      if (!URL.canParse(location, url)) {
        throw new RedirectError("it redirected to an address that is no URL", "Check the address.");
      }
      const from = new URL(url);
      const to = new URL(location, url);
      options = redirected(options, response.status, from, to);
      url = to.href;
    }
  };
}

/** `fetch` refuses `user:password@` in a URL; as a header it means the same. */
function withoutUserInfo(url: string, options: RequestInit): { url: string; options: RequestInit } {
  if (!url.includes("@") || !URL.canParse(url)) return { url, options };
  const parsed = new URL(url);
  if (parsed.username === "" && parsed.password === "") return { url, options };
  const pair = `${decodeURIComponent(parsed.username)}:${decodeURIComponent(parsed.password)}`;
  parsed.username = "";
  parsed.password = "";
  const headers = new Headers(options.headers);
  if (!headers.has("authorization")) headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`);
  return { url: parsed.href, options: { ...options, headers } };
}

function redirected(options: RequestInit, status: number, from: URL, to: URL): RequestInit {
  const method = options.method ?? "GET";
  const readOnly = method === "GET" || method === "HEAD";
  // 301, 302 and 303 would turn a POST into a GET, which asks for something else than the caller did.
  const keepsMethod = readOnly || status === 307 || status === 308;
  const sameOrigin = from.origin === to.origin;
  const target = `${to.protocol}//${to.host}${to.pathname}`;
  if (to.protocol !== "https:" && to.protocol !== from.protocol) {
    throw new RedirectError(`it redirected to ${target}, which is less secure`, `Use ${target} if you trust it.`);
  }
  if (!keepsMethod || (!sameOrigin && !readOnly)) {
    throw new RedirectError(`it redirected a ${method} to ${target}`, `Use ${target} directly if you trust it.`);
  }
  if (sameOrigin) return options;
  const headers: Record<string, string> = {};
  for (const [name, value] of new Headers(options.headers)) if (HARMLESS.has(name)) headers[name] = value;
  return { ...options, headers };
}
