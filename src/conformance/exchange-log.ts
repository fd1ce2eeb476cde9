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

const MAX_EXCHANGES = 6;
const MAX_BODY_LENGTH = 2_000;
/** Of the answer's headers only these tell something. */
const SHOWN_HEADERS = new Set(["content-type", "a2a-extensions", "www-authenticate", "allow", "etag", "cache-control"]);

/** Shorter ones are no secrets, and taking them out everywhere would garble the evidence. */
const MIN_SECRET_LENGTH = 4;

export class ExchangeLog {
  readonly #secrets: readonly string[];
  #exchanges: Exchange[] = [];

  constructor(secrets: readonly string[]) {
    const spellings = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]);
    this.#secrets = [...new Set(spellings)].filter(({ length }) => length >= MIN_SECRET_LENGTH);
  }

  /** Begins a new check. */
  clear(): void {
    this.#exchanges = [];
  }

  recordRequest(request: string, headers: readonly (readonly [string, string])[], body: string): Exchange {
    const exchange: Exchange = {
      request: this.redact(request),
      requestHeaders: this.#shown(headers),
      requestBody: this.body(body),
      response: "no answer",
      responseHeaders: {},
      responseBody: "",
    };
    this.#exchanges.push(exchange);
    if (this.#exchanges.length > MAX_EXCHANGES) this.#exchanges.shift();
    return exchange;
  }

  recordResponse(exchange: Exchange, response: string, headers: Readonly<Record<string, string>> = {}): void {
    exchange.response = this.redact(response);
    exchange.responseHeaders = this.#shown(Object.entries(headers).filter(([name]) => SHOWN_HEADERS.has(name)));
  }

  /** Text as it may be shown: without secrets, and not longer than is useful. */
  body(text: string): string {
    const clean = this.redact(text);
    return clean.length <= MAX_BODY_LENGTH ? clean : `${clean.slice(0, MAX_BODY_LENGTH)}… (${clean.length} characters)`;
  }

  appendBody(exchange: Exchange, text: string): void {
    if (exchange.responseBody.length < MAX_BODY_LENGTH) exchange.responseBody = this.body(exchange.responseBody + text);
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
