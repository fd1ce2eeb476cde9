/** Requests to a registry: where it is, credentials, retries, and its errors. */

import { createTlsFetch } from "../../../core/auth/login/client-certificate.ts";
import { createRetryBackoff, isTransient, sleep } from "../../../core/client/call/retry.ts";
import { redactUrl, toConnectionError } from "../../../core/client/errors.ts";
import { DEFAULT_REQUEST_RETRY, DEFAULT_TIMEOUT_MS } from "../../../core/client/options.ts";
import { createAuthenticatedExchanger, lowerCaseNames } from "../../../core/client/transport/authenticate.ts";
import { createCallExchanger } from "../../../core/client/transport/credential-origins.ts";
import { createTracer } from "../../../core/client/transport/trace.ts";
import { isObject, type JsonObject, type JsonValue } from "../../../core/model/json.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../../../core/wire/exchange.ts";
import { JsonParseError, parseJson } from "../../../core/wire/parse-json.ts";
import { REGISTRY_ERROR_CODES, RegistryError, type RegistryErrorCode, type RegistryOptions } from "./types.ts";

const MAX_RETRY_AFTER_MS = 30_000;

interface RegistryRequest {
  readonly method: string;
  /** Below the base, with the query. */
  readonly path: string;
  readonly body?: JsonValue;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

export interface OpenAnswer {
  readonly call: ExchangeCall;
  readonly answer: ExchangeAnswer;
}

export interface RegistryRequests {
  /** Sends a request that may be repeated, as all those to a registry. Returns what it answered; undefined for 204. */
  send(request: RegistryRequest): Promise<JsonObject | undefined>;
  /** Returns the answer to be read as a stream. */
  open(request: RegistryRequest): Promise<OpenAnswer>;
}

/**
 * Where a registry may be: at the URL if that ends in `/registry`, else below it, as with a server of this product, or,
 * with others, right there.
 */
function basesOf(address: string): readonly [string, ...string[]] {
  if (!/^https?:\/\//i.test(address) || !canParseUrl(address)) {
    throw new TypeError(`"${address}" is not the address of a registry: it must be an http or https URL.`);
  }
  const url = new URL(address);
  url.hash = "";
  url.search = "";
  const base = url.href.replace(/\/+$/, "");
  return base.endsWith("/registry") ? [base] : [`${base}/registry`, base];
}

export function createRegistryRequests(address: string, options: RegistryOptions): RegistryRequests {
  const headers = lowerCaseNames(options.headers);
  let bases = basesOf(address);
  const { origin } = new URL(bases[0]);
  const { fetch = globalThis.fetch, tls } = options;
  // As with an agent, only the origin that the caller chose sees the certificate.
  const own = tls === undefined ? fetch : createTlsFetch(fetch, tls, (url) => new URL(url).origin === origin);
  const plain = createCallExchanger(own);
  const exchange: Exchanger = options.credentials ? createAuthenticatedExchanger(plain, options.credentials) : plain;
  const tracer = createTracer(options.onExchange, headers);
  const retry = options.retry ?? DEFAULT_REQUEST_RETRY;

  function toCall(base: string, { body, headers: own, method, path, ...given }: RegistryRequest): ExchangeCall {
    const signal = given.signal ?? options.signal;
    return {
      method,
      url: `${base}${path}`,
      headers: {
        accept: "application/json",
        ...headers,
        ...own,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      timeoutMs: given.timeoutMs ?? options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    };
  }

  async function exchangeOnce(call: ExchangeCall): Promise<OpenAnswer> {
    tracer?.request(call);
    try {
      return { call, answer: await exchange(call) };
    } catch (error) {
      throw toConnectionError(error, call);
    }
  }

  async function readText({ answer, call }: OpenAnswer): Promise<string> {
    try {
      const text = await answer.text();
      tracer?.response(call, answer, text);
      return text;
    } catch (error) {
      throw toConnectionError(error, call);
    }
  }

  /** The first base that is not unknown to the server is the one. */
  async function open(request: RegistryRequest): Promise<OpenAnswer> {
    for (let at = 0; ; at++) {
      const base = bases[at] as string;
      const opened = await exchangeOnce(toCall(base, request));
      const isLast = at === bases.length - 1;
      if (isSuccess(opened.answer)) {
        bases = [base];
        return opened;
      }
      const error = toRegistryError(opened, await readText(opened));
      if (error.isOfRegistry || isLast || opened.answer.status !== 404) {
        if (error.isOfRegistry) bases = [base];
        throw error.error;
      }
    }
  }

  async function repeat<T>(signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    const backoff = createRetryBackoff(retry.attempts, retry);
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        const wait = mayRepeat(error) ? backoff.next() : undefined;
        if (wait === undefined) throw error;
        const asked = error instanceof RegistryError ? (error.retryAfter ?? 0) * 1000 : 0;
        const delay = Math.max(wait, Math.min(asked, MAX_RETRY_AFTER_MS));
        await sleep(delay, signal).catch((cause: unknown) => {
          throw toConnectionError(cause, { method: "The wait to reach", url: bases[0] });
        });
      }
    }
  }

  return {
    send: (request) =>
      repeat(request.signal ?? options.signal, async () => {
        const opened = await open(request);
        const text = await readText(opened);
        return opened.answer.status === 204 ? undefined : readObject(text, opened.call);
      }),
    async open(request) {
      const opened = await open(request);
      tracer?.response(opened.call, opened.answer);
      return opened;
    },
  };
}

export function mayRepeat(error: unknown): boolean {
  if (error instanceof RegistryError) return error.code === "UNAVAILABLE" || error.code === "RATE_LIMIT_EXCEEDED";
  return isTransient(error);
}

function isSuccess({ status }: ExchangeAnswer): boolean {
  return status >= 200 && status < 300;
}

function readObject(text: string, { method, url }: ExchangeCall): JsonObject {
  const value = parseOrUndefined(text);
  if (isObject(value)) return value;
  throw new RegistryError("INVALID_RESPONSE", `${method} ${redactUrl(url)} did not answer with a JSON object.`);
}

function parseOrUndefined(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonParseError) return undefined;
    throw error;
  }
}

const CODES_BY_STATUS: Readonly<Record<number, RegistryErrorCode>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RATE_LIMIT_EXCEEDED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

/** `isOfRegistry`: the answer has the form of ARD, so that what answered is a registry. */
function toRegistryError({ answer, call }: OpenAnswer, text: string) {
  const { status } = answer;
  const value = parseOrUndefined(text);
  const body = isObject(value) ? value : {};
  const named = REGISTRY_ERROR_CODES.find((code) => code === body.errorCode);
  const usual = CODES_BY_STATUS[status] ?? (status >= 500 ? "INTERNAL_ERROR" : "INVALID_ARGUMENT");
  const where = `${call.method} ${redactUrl(call.url)} answered ${status}`;
  const isOfRegistry = typeof body.errorCode === "string";
  const message = isOfRegistry && typeof body.message === "string" ? body.message : `${where}.`;
  const advice = !isOfRegistry && status === 404 ? " There is no registry at this address." : "";
  const retryAfter = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const again = Number.isFinite(retryAfter) ? retryAfter : undefined;
  return { isOfRegistry, error: new RegistryError(named ?? usual, message + advice, again) };
}
