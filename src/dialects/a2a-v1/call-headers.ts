/** Service parameters, which both bindings carry as HTTP headers. */
import type { Operation } from "../../model/operation.ts";
import type { CallTarget } from "../contract.ts";
import { VERSION } from "./service-parameters.ts";

export function isStreaming({ kind }: Operation): boolean {
  return kind === "stream" || kind === "subscribe";
}

/** The caller's own headers give way to the protocol's. Names are lower-case. */
export function callHeaders(operation: Operation, target: CallTarget, accept: string): Record<string, string> {
  const headers: Record<string, string> = {
    ...target.headers,
    accept: isStreaming(operation) ? `text/event-stream, ${accept}` : accept,
    "a2a-version": VERSION,
  };
  if (target.extensions.length > 0) headers["a2a-extensions"] = target.extensions.join(",");
  if (target.idempotencyKey !== undefined) headers["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    headers["last-event-id"] = String(operation.after);
  }
  return headers;
}

/** An entry without a tenant must be called without one. */
export function tenantOf({ tenant }: CallTarget): string | undefined {
  return tenant === "" ? undefined : tenant;
}

export function toTimestamp(milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : new Date(milliseconds).toISOString();
}
