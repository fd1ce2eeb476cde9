/** The paths below `/tasks`. */
import type { OperationKind } from "../../model/operation.ts";
import { decodeSegment, type Method } from "../shared/http/routes.ts";

export const HTTP_PREFIX = "tasks";

export type SupportedKind = Extract<OperationKind, "send" | "stream" | "get" | "cancel" | "subscribe">;
type Methods = Readonly<Partial<Record<Method, SupportedKind>>>;

interface RouteMatch {
  readonly methods: Methods;
  /** The task id, decoded; empty if the path has none. */
  readonly id: string;
}

/** A task id may be `send`: only the HTTP method distinguishes the two. */
const NAMED_PATHS: Readonly<Record<string, Methods>> = {
  send: { POST: "send", GET: "get" },
  sendSubscribe: { POST: "stream", GET: "get" },
};

const TASK: Methods = { GET: "get" };

/** Browsers can open an event stream by GET only; other clients may use either. */
const TASK_SUBPATHS: Readonly<Record<string, Methods>> = {
  cancel: { POST: "cancel" },
  subscribe: { GET: "subscribe", POST: "subscribe" },
};

const SEGMENTS = /^\/?([^/]+)(?:\/([^/]+))?\/?$/;

/** `path` is still percent-encoded. */
export function matchRoute(path: string): RouteMatch | undefined {
  const [, first, second] = SEGMENTS.exec(path) ?? [];
  if (first === undefined) return undefined;
  if (second === undefined) {
    const methods = Object.hasOwn(NAMED_PATHS, first) ? NAMED_PATHS[first] : TASK;
    return { methods: methods ?? TASK, id: decodeSegment("id", first) };
  }
  const methods = Object.hasOwn(TASK_SUBPATHS, second) ? TASK_SUBPATHS[second] : undefined;
  return methods === undefined ? undefined : { methods, id: decodeSegment("id", first) };
}
