/** Asks over HTTP and gRPC, and notes what was answered. */
import { type ServiceError, status } from "@grpc/grpc-js";
import type { GeneratedClient, Plain } from "../support/generated-client.ts";

export interface Answer {
  /** For the table. */
  readonly brief: string;
  /** The whole answer. */
  readonly text: string;
}

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Of a stream, the first bytes are the answer. */
export async function askHttp(
  base: string,
  { method, path, headers, body }: HttpRequest,
  token: string | undefined,
): Promise<Answer> {
  const leaving = new AbortController();
  const response = await fetch(`${base}${path}`, {
    method,
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: leaving.signal,
  });
  const challenge = response.headers.has("www-authenticate") ? " +challenge" : "";
  if (response.headers.get("content-type") === "text/event-stream") {
    const first = await response.body?.getReader().read();
    leaving.abort();
    return { brief: `${response.status} stream`, text: new TextDecoder().decode(first?.value) };
  }
  const text = await response.text();
  const code = errorCode(text, response.status);
  return { brief: `${response.status}${code === undefined ? "" : ` ${code}`}${challenge}`, text };
}

/** Calls a method of 1.0 over JSON-RPC, which must succeed. */
export async function rpcResult(base: string, method: string, params: object, token: string) {
  const body = { jsonrpc: "2.0", id: 1, method, params };
  const request = { method: "POST", path: "", headers: { "a2a-version": "1.0" }, body };
  return JSON.parse((await askHttp(base, request, token)).text).result;
}

interface ErrorDocument {
  readonly error?: { readonly code?: unknown; readonly status?: unknown };
  readonly code?: unknown;
}

/** Where the code only repeats the status, its name. */
function errorCode(text: string, httpStatus: number): string | undefined {
  if (text === "") return undefined;
  const { error, code = error?.code } = JSON.parse(text) as ErrorDocument;
  if (code === undefined) return undefined;
  return String(code === httpStatus ? error?.status : code);
}

/** Of a stream, the first frame is the answer. */
export async function askGrpc(
  client: GeneratedClient,
  method: string,
  request: Plain,
  entries: Readonly<Record<string, string>>,
  streams: boolean,
): Promise<Answer> {
  try {
    const reply = streams
      ? await firstOf(client.stream(method, request, entries))
      : await client.ask(method, request, entries);
    return { brief: streams ? "OK stream" : "OK", text: JSON.stringify(reply) };
  } catch (error) {
    const { code, details, metadata: trailer } = error as ServiceError;
    const challenge = trailer.get("www-authenticate").length > 0 ? " +challenge" : "";
    return { brief: `${status[code]}${challenge}`, text: `${details} ${trailer.get("grpc-status-details-bin")}` };
  }
}

async function firstOf(stream: ReturnType<GeneratedClient["stream"]>): Promise<Plain> {
  for await (const frame of stream) {
    stream.cancel();
    return frame;
  }
  throw new Error("The stream was empty.");
}
