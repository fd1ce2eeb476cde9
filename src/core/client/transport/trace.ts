/** Traces requests and responses for debugging, with secrets redacted. */
import { canParseUrl } from "../../model/url.ts";
import type { ExchangeAnswer, ExchangeCall } from "../../wire/exchange.ts";
import type { RpcMetadata } from "../../wire/rpc.ts";
import type { ExchangeTrace } from "../options.ts";

const REDACTED = "[redacted]";

const SECRET_NAME = /auth|token|secret|cookie|credential|password|session|sign|key/i;
const NOT_SECRET = new Set(["idempotency-key"]);
/** Fields of push configs and of sessions. The same names elsewhere are redacted too, which is fine for a trace. */
const SECRET_FIELDS = /"(credentials|token|agentSessionId|agentLoginSessionId|authCode)"(\s*:\s*)"(?:[^"\\]|\\.)*"/g;

export interface Tracer {
  request(call: ExchangeCall): void;
  response(call: ExchangeCall, answer: ExchangeAnswer, body?: string): void;
  rpcRequest(url: string, metadata: RpcMetadata, message: RpcMessage): void;
  rpcResponse(url: string, code: number, metadata: RpcMetadata, message?: RpcMessage): void;
  /** One message of a streamed response. */
  message(call: Pick<ExchangeTrace, "method" | "url">, body: string): void;
}

/** gRPC messages are binary, and secrets in them could not be found: what is traced is their content. */
interface RpcMessage {
  readonly bytes: number;
  readonly content: unknown;
}

/** All of the caller's `headers` are redacted, whatever their names: many different headers carry credentials. */
export function createTracer(
  onExchange: ((trace: ExchangeTrace) => void) | undefined,
  callerHeaders: Readonly<Record<string, string>>,
): Tracer | undefined {
  if (onExchange === undefined) return undefined;
  const isSecret = (name: string): boolean =>
    name in callerHeaders || (SECRET_NAME.test(name) && !NOT_SECRET.has(name.toLowerCase()));
  const redact = (headers: Iterable<readonly [string, string]>): Record<string, string> =>
    Object.fromEntries([...headers].map(([name, value]) => [name, isSecret(name) ? REDACTED : value]));
  const http = (method: string, url: string, headers: Iterable<readonly [string, string]>, body?: string) => ({
    method,
    url: redactTracedUrl(url),
    headers: redact(headers),
    ...(body === undefined ? {} : { body: redactBody(body) }),
  });
  const rpc = (url: string, metadata: RpcMetadata, message?: RpcMessage) => ({
    method: "gRPC",
    url,
    headers: redact(Object.entries(metadata)),
    ...(message === undefined ? {} : { body: redactBody(describeMessage(message)) }),
  });
  return {
    request: ({ body, headers, method, url }) =>
      onExchange({ direction: "request", ...http(method, url, Object.entries(headers), body) }),
    response: ({ method, url }, { headers, status }, body) =>
      onExchange({
        direction: "response",
        status,
        ...http(method, url, headers instanceof Headers ? headers : [], body),
      }),
    rpcRequest: (url, metadata, message) => onExchange({ direction: "request", ...rpc(url, metadata, message) }),
    rpcResponse: (url, status, metadata, message) =>
      onExchange({ direction: "response", status, ...rpc(url, metadata, message) }),
    message: ({ method = "", url = "" }, body) =>
      onExchange({
        direction: "response",
        ...(method === "gRPC" ? { ...rpc(url, {}), body: redactBody(body) } : http(method, url, [], body)),
      }),
  };
}

function describeMessage({ bytes, content }: RpcMessage): string {
  return `${JSON.stringify(content) ?? "{}"} (${bytes} bytes)`;
}

function redactBody(body: string): string {
  return body.replace(SECRET_FIELDS, `"$1"$2"${REDACTED}"`);
}

function redactTracedUrl(url: string): string {
  if (!canParseUrl(url)) return "an invalid URL";
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  for (const name of [...shown.searchParams.keys()]) {
    // `pageToken` is a cursor and useful in a trace.
    if (SECRET_NAME.test(name) && name !== "pageToken") shown.searchParams.set(name, REDACTED);
  }
  return shown.href;
}
