/** What travels beside a request: extensions, in headers or in the metadata of gRPC. Names are lower-case here. */
import { ProtocolError } from "../../model/errors.ts";
import type { AgentService } from "../contract.ts";
import { listIn } from "../shared/request-headers.ts";

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
  const own = listIn(headers["x-a2a-extensions"]);
  const later = listIn(headers["a2a-extensions"]);
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
