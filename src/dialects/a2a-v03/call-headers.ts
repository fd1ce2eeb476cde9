/** What travels beside a request, as HTTP headers. 0.3 names no version. */
import type { Operation } from "../../model/operation.ts";
import type { CallTarget } from "../contract.ts";

/** The caller's own headers give way to the protocol's. Names are lower-case. */
export function callHeaders(operation: Operation, target: CallTarget): Record<string, string> {
  const streams = operation.kind === "stream" || operation.kind === "subscribe";
  const headers: Record<string, string> = {
    ...target.headers,
    accept: streams ? "text/event-stream, application/json" : "application/json",
  };
  if (target.extensions.length > 0) headers["x-a2a-extensions"] = target.extensions.join(",");
  if (target.idempotencyKey !== undefined) headers["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    headers["last-event-id"] = String(operation.after);
  }
  return headers;
}
