/** What every request of a version has. */
import type { Fields } from "../json.ts";
import type { Version } from "../requirement.ts";
import type { PeerOptions, Target } from "./peer.ts";

export const VERSION_HEADER = "A2A-Version";

/** In 0.3 no version is named, and extensions are asked for under another name. */
export function standingHeaders(version: Version, { requiredExtensions }: PeerOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  if (version === "1.0") headers[VERSION_HEADER] = version;
  if (requiredExtensions.length > 0) headers[extensionsHeader(version)] = requiredExtensions.join(", ");
  return headers;
}

export function extensionsHeader(version: Version): string {
  return version === "1.0" ? "A2A-Extensions" : "X-A2A-Extensions";
}

export function withTenant(params: Fields, { tenant }: Target): Fields {
  return tenant === undefined || "tenant" in params ? params : { tenant, ...params };
}

export function withQuery(url: URL, query: readonly (readonly [string, string])[]): URL {
  if (query.length === 0) return url;
  const full = new URL(url);
  for (const [name, value] of query) full.searchParams.set(name, value);
  return full;
}
