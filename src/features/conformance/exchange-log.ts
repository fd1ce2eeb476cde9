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
const SHOWN_HEADERS = ["content-type", "a2a-extensions", "www-authenticate", "allow", "etag", "cache-control"];

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

  recordRequest(request: string, headers: Readonly<Record<string, string>>, body: string): Exchange {
    const exchange: Exchange = {
      request: this.redact(request),
      requestHeaders: this.#redactAll(Object.entries(headers)),
      requestBody: this.body(body),
      response: "no answer",
      responseHeaders: {},
      responseBody: "",
    };
    this.#exchanges.push(exchange);
    if (this.#exchanges.length > MAX_EXCHANGES) this.#exchanges.shift();
    return exchange;
  }

  recordResponse(
    exchange: Exchange,
    response: string,
    headers: { get(name: string): string | null } = new Headers(),
  ): void {
    exchange.response = this.redact(response);
    const shown = SHOWN_HEADERS.map((name) => [name, headers.get(name)] as const);
    exchange.responseHeaders = this.#redactAll(shown);
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

  #redactAll(headers: readonly (readonly [string, string | null])[]): Readonly<Record<string, string>> {
    return Object.fromEntries(
      headers.flatMap(([name, value]) => (value === null ? [] : [[name, this.redact(value)] as const])),
    );
  }
}
