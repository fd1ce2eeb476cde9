/** Service parameters of a request: version and extensions. Header names are lower-case. */

import { ProtocolError } from "../../model/errors.ts";
import type { Operation } from "../../model/operation.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { CallTarget } from "../contract.ts";
import { callHeaders } from "../shared/http/calling.ts";
import { parseListHeader } from "../shared/http/requests.ts";

/** Service parameters, which both bindings carry as HTTP headers. */
export function serviceHeaders(operation: Operation, target: CallTarget, accept?: string): Record<string, string> {
  const headers = callHeaders(operation, target, accept);
  headers["a2a-version"] = VERSION;
  if (target.extensions.length > 0) headers["a2a-extensions"] = target.extensions.join(",");
  return headers;
}

/** An interface without a tenant must be called without one. */
export function tenantOf({ tenant }: CallTarget): string | undefined {
  return tenant === "" ? undefined : tenant;
}

export function toTimestamp(milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : new Date(milliseconds).toISOString();
}

export const VERSION = "1.0";

type Headers = ExchangeRequest["headers"];

const VERSION_FORM = /^(\d+\.\d+)(?:\.\d+)?$/;

/**
 * Throws if the caller requests another version. The patch number is ignored. No version means 0.3 (§3.6.2), but 0.3 has
 * nothing at these paths, so a caller without one can only mean 1.0.
 */
export function requireVersion(exchange: ExchangeRequest): void {
  const named = exchange.headers["a2a-version"]?.trim() || versionInQuery(exchange.query);
  if (named === "" || VERSION_FORM.exec(named)?.[1] === VERSION) return;
  throw versionNotSupported(`A2A-Version ${named}`, named);
}

/** On gRPC the package determines the version; a version in the metadata must not contradict it. */
export function requireSameVersion(metadata: Headers): void {
  const named = metadata["a2a-version"]?.trim() ?? "";
  if (named === "" || VERSION_FORM.exec(named)?.[1] === VERSION) return;
  throw versionNotSupported(`A2A-Version ${named}`, named);
}

function versionNotSupported(subject: string, named: string): ProtocolError {
  return new ProtocolError("VERSION_NOT_SUPPORTED", `${subject} is not supported; send A2A-Version: ${VERSION}.`, {
    metadata: { requestedVersion: named.slice(0, 32), supportedVersions: VERSION },
  });
}

function versionInQuery(query: string): string {
  if (query === "") return "";
  for (const [name, value] of new URLSearchParams(query)) {
    if (name.toLowerCase() === "a2a-version") return value.trim();
  }
  return "";
}

export function requestedExtensions(headers: Headers): readonly string[] {
  return parseListHeader(headers["a2a-extensions"]);
}
