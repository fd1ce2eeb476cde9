/** The path prefix that everything over HTTP may be served below. */
import type { IncomingMessage } from "node:http";
import type { FullReply } from "../../wire/exchange.ts";
import { errorReply } from "./error-replies.ts";

export function outsideMountReply(mount: string): FullReply {
  return errorReply(404, `Everything here is below ${mount}.`);
}

/** Strips the mount path from the request's URL; returns false, without a change, for a URL outside of it. */
export function removeMountPath(request: IncomingMessage, mount: string): boolean {
  const rest = pathBelowMount(toOriginForm(request.url ?? "/"), mount);
  if (rest === undefined) return false;
  request.url = rest;
  return true;
}

/** The path below the mount path, with a leading slash; undefined for a path outside of it. */
export function pathBelowMount(target: string, mount: string): string | undefined {
  if (!target.startsWith(mount)) return undefined;
  const rest = target.slice(mount.length);
  if (rest.startsWith("/")) return rest;
  return rest === "" || rest.startsWith("?") ? `/${rest}` : undefined;
}

/** Converts absolute-form request targets (RFC 9112 §3.2.2). */
export function toOriginForm(url: string): string {
  if (url.startsWith("/")) return url;
  const path = url.replace(/^https?:\/\/[^/?]*/i, "");
  return path.startsWith("/") ? path : `/${path}`;
}
