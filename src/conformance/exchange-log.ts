/** Requests and responses of a check, shown when it fails. */

export interface Exchange {
  /** `POST http://…` or the full name of a gRPC method. */
  readonly request: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  /** `200`, a gRPC status, or the connection error. */
  response: string;
  responseHeaders: Readonly<Record<string, string>>;
  responseBody: string;
}

const MAX_EXCHANGES = 6;
const MAX_BODY_LENGTH = 2_000;
/** Response headers worth showing. */
const SHOWN_HEADERS = new Set(["content-type", "a2a-extensions", "www-authenticate", "allow", "etag", "cache-control"]);

/** Shorter values are not secrets, and redacting them everywhere would garble the evidence. */
const MIN_SECRET_LENGTH = 4;

export class ExchangeLog {
  readonly #secrets: readonly string[];
  #exchanges: Exchange[] = [];

  constructor(secrets: readonly string[]) {
    const spellings = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]);
    this.#secrets = [...new Set(spellings)].filter(({ length }) => length >= MIN_SECRET_LENGTH);
  }

  /** Called at the start of each check. */
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

  /** Text for display: redacted and truncated. */
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
