/** What travels beside a request: extensions, in headers or in the metadata of gRPC. Names are lower-case here. */

import { ProtocolError } from "../../model/errors.ts";
import type { Operation } from "../../model/operation.ts";
import type { AgentService, CallTarget } from "../contract.ts";
import { parseListHeader } from "../shared/http/requests.ts";

/** What travels beside a request, as HTTP headers. 0.3 names no version. */

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

export const VERSION = "0.3";

type Headers = Readonly<Record<string, string | undefined>>;

const OWN_VERSIONS = /^0\.[23](?:\.\d+)?$/;

/** On gRPC the package says which version is meant; peers of an early 1.0 used the same one for other messages. */
export function requireSameVersion(metadata: Headers): void {
  const named = metadata["a2a-version"]?.trim() ?? "";
  if (named === "" || OWN_VERSIONS.test(named)) return;
  throw new ProtocolError("VERSION_NOT_SUPPORTED", `A2A ${named.slice(0, 32)} is not spoken in this package.`, {
    metadata: { requestedVersion: named.slice(0, 32), supportedVersions: VERSION },
  });
}

/** 1.0 dropped the prefix; callers that speak both may use either name. */
export function requestedExtensions(headers: Headers): readonly string[] {
  const own = parseListHeader(headers["x-a2a-extensions"]);
  const later = parseListHeader(headers["a2a-extensions"]);
  if (later.length === 0) return own;
  return own.length === 0 ? later : [...new Set([...own, ...later])];
}

/** Headers of the reply that name what took effect. */
export function activationHeaders(
  service: AgentService,
  requested: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (requested.length === 0) return undefined;
  const active = service.activate(requested);
  return active.length === 0 ? undefined : { "x-a2a-extensions": active.join(",") };
}
