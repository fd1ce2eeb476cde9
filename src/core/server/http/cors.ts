export interface CorsOptions {
  /** Origins that browsers may call from; `"*"` allows all. Default: none. */
  readonly origins: readonly string[];
}

const ALLOWED_HEADERS =
  "content-type, accept, authorization, x-api-key, a2a-version, a2a-extensions, x-a2a-extensions, idempotency-key, last-event-id";
const EXPOSED_HEADERS = "a2a-extensions, x-a2a-extensions, etag, retry-after, www-authenticate";

type Headers = Readonly<Record<string, string>>;

export type Cors = ReturnType<typeof createCors>;

/** CORS rules for browsers of other origins. `keyHeader` is the header of API keys, if it is not the default one. */
export function createCors(options: CorsOptions, keyHeader?: string) {
  const allowedHeaders = keyHeader === undefined ? ALLOWED_HEADERS : `${ALLOWED_HEADERS}, ${keyHeader.toLowerCase()}`;
  const all = options.origins.includes("*");
  const origins = new Set(options.origins);
  const varies = !all && origins.size > 0;
  const allows = (origin: string) => all || origins.has(origin);
  const headersFor = (origin: string | undefined): Headers | undefined => {
    if (origin === undefined || !allows(origin)) return varies ? { vary: "Origin" } : undefined;
    return {
      "access-control-allow-origin": all ? "*" : origin,
      "access-control-expose-headers": EXPOSED_HEADERS,
      ...(all ? undefined : { vary: "Origin" }),
    };
  };
  return {
    /** Whether responses depend on the origin, which caches need to know even for requests without one. */
    varies,
    allows,
    /** Headers for a response, or undefined if the origin may not read it. */
    headers: headersFor,
    preflight(origin: string | undefined, allow: string): Headers {
      const headers = headersFor(origin);
      if (headers?.["access-control-allow-origin"] === undefined) return { ...headers, allow };
      return {
        ...headers,
        allow,
        "access-control-allow-methods": allow,
        "access-control-allow-headers": allowedHeaders,
        "access-control-max-age": "600",
      };
    },
  };
}
