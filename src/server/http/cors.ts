export interface CorsOptions {
  /** Origins that browsers may call from; `"*"` stands for all. None: browsers may not, as by default. */
  readonly origins: readonly string[];
}

const ALLOWED_HEADERS =
  "content-type, accept, authorization, x-api-key, a2a-version, a2a-extensions, x-a2a-extensions, idempotency-key, last-event-id";
const EXPOSED_HEADERS = "a2a-extensions, x-a2a-extensions, etag, retry-after, www-authenticate";

/** What browsers of other origins may do. */
export class Cors {
  readonly #all: boolean;
  readonly #origins: ReadonlySet<string>;
  readonly #allowedHeaders: string;

  /** `keyHeader` is that of API keys, where it is another than usual. */
  constructor(options: CorsOptions, keyHeader?: string) {
    this.#allowedHeaders = keyHeader === undefined ? ALLOWED_HEADERS : `${ALLOWED_HEADERS}, ${keyHeader.toLowerCase()}`;
    this.#all = options.origins.includes("*");
    this.#origins = new Set(options.origins);
  }

  /** Answers differ by origin, which caches must know also of those that were asked for without one. */
  get varies(): boolean {
    return !this.#all && this.#origins.size > 0;
  }

  allows(origin: string): boolean {
    return this.#all || this.#origins.has(origin);
  }

  /** Headers for an answer, or undefined if the origin may not read it. */
  headers(origin: string | undefined): Readonly<Record<string, string>> | undefined {
    if (origin === undefined || !this.allows(origin)) return this.varies ? { vary: "Origin" } : undefined;
    return {
      "access-control-allow-origin": this.#all ? "*" : origin,
      "access-control-expose-headers": EXPOSED_HEADERS,
      ...(this.#all ? undefined : { vary: "Origin" }),
    };
  }

  preflight(origin: string | undefined, allow: string): Readonly<Record<string, string>> {
    const headers = this.headers(origin);
    if (headers?.["access-control-allow-origin"] === undefined) return { ...headers, allow };
    return {
      ...headers,
      allow,
      "access-control-allow-methods": allow,
      "access-control-allow-headers": this.#allowedHeaders,
      "access-control-max-age": "600",
    };
  }
}
