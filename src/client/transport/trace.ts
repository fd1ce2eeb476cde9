/** Traces requests and responses for debugging, with secrets redacted. */
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
  /** gRPC messages are binary: only their size is traced. */
  rpcRequest(url: string, metadata: RpcMetadata, bytes: number): void;
  rpcResponse(url: string, code: number, metadata: RpcMetadata, bytes?: number): void;
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
  return {
    request(call) {
      onExchange({
        direction: "request",
        method: call.method,
        url: redactTracedUrl(call.url),
        headers: redact(Object.entries(call.headers)),
        ...(call.body === undefined ? {} : { body: redactBody(call.body) }),
      });
    },
    response(call, answer, body) {
      onExchange({
        direction: "response",
        method: call.method,
        url: redactTracedUrl(call.url),
        status: answer.status,
        headers: redact(answer.headers instanceof Headers ? answer.headers : []),
        ...(body === undefined ? {} : { body: redactBody(body) }),
      });
    },
    rpcRequest(url, metadata, bytes) {
      const headers = redact(Object.entries(metadata));
      onExchange({ direction: "request", method: "gRPC", url, headers, body: formatBytes(bytes) });
    },
    rpcResponse(url, status, metadata, bytes) {
      const headers = redact(Object.entries(metadata));
      const body = bytes === undefined ? {} : { body: formatBytes(bytes) };
      onExchange({ direction: "response", method: "gRPC", url, status, headers, ...body });
    },
  };
}

function formatBytes(count: number): string {
  return `(${count} bytes)`;
}

function redactBody(body: string): string {
  return body.replace(SECRET_FIELDS, `"$1"$2"${REDACTED}"`);
}

function redactTracedUrl(url: string): string {
  if (!URL.canParse(url)) return "an invalid URL";
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  for (const name of [...shown.searchParams.keys()]) {
    // `pageToken` is a cursor and useful in a trace.
    if (SECRET_NAME.test(name) && name !== "pageToken") shown.searchParams.set(name, REDACTED);
  }
  return shown.href;
}
