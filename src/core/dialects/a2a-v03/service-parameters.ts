/** Service parameters of a request: extensions, in HTTP headers or gRPC metadata. Names are lower-case. */

import { ProtocolError } from "../../model/errors.ts";
import type { Operation } from "../../model/operation.ts";
import type { CallTarget } from "../contract.ts";
import { callHeaders } from "../shared/http/calling.ts";
import { parseListHeader } from "../shared/http/requests.ts";

/** 0.3 sends no version. */
export function serviceHeaders(operation: Operation, target: CallTarget): Record<string, string> {
  const headers = callHeaders(operation, target);
  if (target.extensions.length > 0) headers[EXTENSIONS_HEADER] = target.extensions.join(",");
  return headers;
}

export const EXTENSIONS_HEADER = "x-a2a-extensions";

export const VERSION = "0.3";

type Headers = Readonly<Record<string, string | undefined>>;

const OWN_VERSIONS = /^0\.[23](?:\.\d+)?$/;

/** On gRPC the package determines the version, but peers of an early 1.0 used the same package for other messages. */
export function requireSameVersion(metadata: Headers): void {
  const named = metadata["a2a-version"]?.trim() ?? "";
  if (named === "" || OWN_VERSIONS.test(named)) return;
  throw new ProtocolError("VERSION_NOT_SUPPORTED", `A2A ${named.slice(0, 32)} is not supported in this package.`, {
    metadata: { requestedVersion: named.slice(0, 32), supportedVersions: VERSION },
  });
}

/** 1.0 dropped the prefix; callers that support both versions may use either name. */
export function requestedExtensions(headers: Headers): readonly string[] {
  const own = parseListHeader(headers[EXTENSIONS_HEADER]);
  const later = parseListHeader(headers["a2a-extensions"]);
  if (later.length === 0) return own;
  return own.length === 0 ? later : [...new Set([...own, ...later])];
}
