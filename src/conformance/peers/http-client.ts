/** Requests exactly as written: header names keep their case, and nothing is added but what HTTP itself needs. */

import { Agent, type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestSecure, Agent as SecureAgent } from "node:https";
import { PeerError } from "../check.ts";
import type { Exchange, ExchangeLog } from "../exchange-log.ts";

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: string | Uint8Array;
}

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly body: IncomingMessage;
  readonly exchange: Exchange;
}

export interface FullResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Without parameters, in lower case. */
  readonly contentType: string;
  readonly text: string;
}

const MAX_BODY_BYTES = 16 * 1024 * 1024;

export class HttpClient {
  readonly log: ExchangeLog;
  readonly timeoutMs: number;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #secureAgent = new SecureAgent({ keepAlive: true });
  readonly #signal: AbortSignal;

  constructor(log: ExchangeLog, timeoutMs: number, signal: AbortSignal) {
    this.log = log;
    this.timeoutMs = timeoutMs;
    this.#signal = signal;
  }

  /** Resolves when the headers are there. */
  send(request: HttpRequest): Promise<HttpResponse> {
    const { body, headers, method, url } = request;
    const exchange = this.log.recordRequest(`${method} ${url.href}`, headers, printable(body));
    const secure = url.protocol === "https:";
    const fields: Record<string, string> = Object.fromEntries(headers);
    if (body !== undefined) fields["Content-Length"] = String(Buffer.byteLength(body));
    return new Promise((resolve, reject) => {
      const sent = (secure ? requestSecure : requestPlain)(url, {
        method,
        headers: fields,
        agent: secure ? this.#secureAgent : this.#agent,
        signal: this.#signal,
      });
      const timer = setTimeout(() => sent.destroy(new Error(timeoutMessage(this.timeoutMs))), this.timeoutMs);
      sent.on("error", (error) => {
        clearTimeout(timer);
        this.log.recordResponse(exchange, error.message);
        reject(new PeerError(`${method} ${this.log.redact(url.pathname)}: ${error.message}`));
      });
      sent.on("response", (response) => {
        clearTimeout(timer);
        const received = headersOf(response);
        this.log.recordResponse(exchange, String(response.statusCode ?? 0), received);
        resolve({
          status: response.statusCode ?? 0,
          headers: received,
          contentType: mediaTypeOf(received["content-type"]),
          body: response,
          exchange,
        });
      });
      sent.end(body);
    });
  }

  /** Reads the answer to its end. */
  async readFull(answer: HttpResponse): Promise<FullResponse> {
    const { body, contentType, exchange, headers, status } = answer;
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const timer = setTimeout(() => body.destroy(new Error("the answer did not end in time")), this.timeoutMs);
    try {
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        bytes += chunk.byteLength;
        if (bytes > MAX_BODY_BYTES) throw new Error("the answer is too large");
        chunks.push(chunk);
      }
    } catch (error) {
      throw new PeerError(error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(timer);
    }
    const text = Buffer.concat(chunks).toString("utf8");
    this.log.appendBody(exchange, text);
    return { status, headers, contentType, text };
  }

  async exchange(request: HttpRequest): Promise<FullResponse> {
    return this.readFull(await this.send(request));
  }

  close(): void {
    this.#agent.destroy();
    this.#secureAgent.destroy();
  }
}

export function timeoutMessage(timeoutMs: number): string {
  return `no answer within ${timeoutMs / 1_000} s`;
}

function headersOf(response: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}

function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

function printable(body: string | Uint8Array | undefined): string {
  if (body === undefined) return "";
  return typeof body === "string" ? body : `(bytes) ${Buffer.from(body).toString("hex")}`;
}

/** One header block over another; an undefined value takes a header away. Names are compared without case. */
export function mergeHeaders(
  ...blocks: readonly Readonly<Record<string, string | undefined>>[]
): (readonly [string, string])[] {
  const merged = new Map<string, readonly [string, string | undefined]>();
  for (const block of blocks) {
    for (const [name, value] of Object.entries(block)) merged.set(name.toLowerCase(), [name, value]);
  }
  return [...merged.values()].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
}
