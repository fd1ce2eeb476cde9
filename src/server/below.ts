import type { ExchangeRequest } from "../wire/exchange.ts";

/** The same request as its binding sees it: from its own prefix on. */
export class Below implements ExchangeRequest {
  readonly path: string;
  readonly #outer: ExchangeRequest;

  constructor(outer: ExchangeRequest, path: string) {
    this.#outer = outer;
    this.path = path;
  }

  get method() {
    return this.#outer.method;
  }
  get query() {
    return this.#outer.query;
  }
  get headers() {
    return this.#outer.headers;
  }
  get body() {
    return this.#outer.body;
  }
  get remoteAddress() {
    return this.#outer.remoteAddress;
  }
  get certificate() {
    return this.#outer.certificate;
  }
}
