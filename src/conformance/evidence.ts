/** What went over the wire during a check, to be shown when it fails. */

export interface Exchange {
  /** `POST http://…` or the full name of a gRPC method. */
  readonly request: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  /** `200`, a gRPC status, or what went wrong. */
  response: string;
  responseHeaders: Readonly<Record<string, string>>;
  responseBody: string;
}

const MOST_EXCHANGES = 6;
const LONGEST_BODY = 2_000;
/** Of the answer's headers only these tell something. */
const TELLING_HEADERS = new Set([
  "content-type",
  "a2a-extensions",
  "www-authenticate",
  "allow",
  "etag",
  "cache-control",
]);

/** Shorter ones are no secrets, and taking them out everywhere would garble the evidence. */
const SHORTEST_SECRET = 4;

export class ExchangeLog {
  readonly #secrets: readonly string[];
  #exchanges: Exchange[] = [];

  constructor(secrets: readonly string[]) {
    const spellings = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]);
    this.#secrets = [...new Set(spellings)].filter(({ length }) => length >= SHORTEST_SECRET);
  }

  /** Begins a new check. */
  clear(): void {
    this.#exchanges = [];
  }

  begin(request: string, headers: readonly (readonly [string, string])[], body: string): Exchange {
    const exchange: Exchange = {
      request: this.redact(request),
      requestHeaders: this.#shown(headers),
      requestBody: this.body(body),
      response: "no answer",
      responseHeaders: {},
      responseBody: "",
    };
    this.#exchanges.push(exchange);
    if (this.#exchanges.length > MOST_EXCHANGES) this.#exchanges.shift();
    return exchange;
  }

  answered(exchange: Exchange, response: string, headers: Readonly<Record<string, string>> = {}): void {
    exchange.response = this.redact(response);
    exchange.responseHeaders = this.#shown(Object.entries(headers).filter(([name]) => TELLING_HEADERS.has(name)));
  }

  /** Text as it may be shown: without secrets, and not longer than is useful. */
  body(text: string): string {
    const clean = this.redact(text);
    return clean.length <= LONGEST_BODY ? clean : `${clean.slice(0, LONGEST_BODY)}… (${clean.length} characters)`;
  }

  appendTo(exchange: Exchange, text: string): void {
    if (exchange.responseBody.length < LONGEST_BODY) exchange.responseBody = this.body(exchange.responseBody + text);
  }

  redact(text: string): string {
    return this.#secrets.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), text);
  }

  get exchanges(): readonly Exchange[] {
    return this.#exchanges;
  }

  #shown(headers: readonly (readonly [string, string])[]): Readonly<Record<string, string>> {
    return Object.fromEntries(headers.map(([name, value]) => [name, this.redact(value)]));
  }
}
