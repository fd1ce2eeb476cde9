/** A request of somebody who means no good, and what may be expected of the answer. */
import type { RawRequest } from "../support/raw-http.ts";

/** Whose answer a request must get: that of a dialect over a binding, or that of the server itself. */
export type Lane =
  | "JSON-RPC"
  | "HTTP+JSON"
  | "0.3 JSON-RPC"
  | "0.3 HTTP+JSON"
  | "0.1 JSON-RPC"
  | "tasks-rest"
  | "server";

export interface HostileRequest {
  /** What is wrong with it. */
  readonly label: string;
  readonly lane: Lane;
  readonly raw: RawRequest;
  /** The path starts at the server, not at an agent. */
  readonly atRoot?: boolean;
}

export const RPC_ID = 7;
export const JSON_TYPE = { "content-type": "application/json" } as const;
export const V1_JSON = { "a2a-version": "1.0", ...JSON_TYPE } as const;

/** The tasks that hostile requests may name. */
export interface Known {
  readonly ended: string;
  readonly waiting: string;
}

export function rpc(
  label: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): HostileRequest {
  return { label, lane: "JSON-RPC", raw: { method: "POST", headers: { ...V1_JSON, ...headers }, body } };
}

export function rest(label: string, path: string, body?: string | Uint8Array): HostileRequest {
  const raw = { method: body === undefined ? "GET" : "POST", path: `/rest${path}`, headers: V1_JSON };
  return { label, lane: "HTTP+JSON", raw: body === undefined ? raw : { ...raw, body } };
}

/** The same params in both bindings, as a send or as a stream. */
export function sends(label: string, params: unknown): HostileRequest[] {
  const text = JSON.stringify(params);
  return [
    rpc(label, envelope("SendMessage", text)),
    rpc(label, envelope("SendStreamingMessage", text)),
    rest(label, "/message:send", text),
    rest(label, "/message:stream", text),
  ];
}

export function envelope(method: string, paramsJson: string): string {
  return `{"jsonrpc":"2.0","id":${RPC_ID},"method":${JSON.stringify(method)},"params":${paramsJson}}`;
}

/** Lone surrogates have no place in a URL. */
export function inUrl(text: string): string {
  return encodeURIComponent(Buffer.from(text, "utf8").toString("utf8"));
}
