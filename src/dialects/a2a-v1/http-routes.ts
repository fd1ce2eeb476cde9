/** The paths of the HTTP+JSON binding, as the proto's annotations give them, with and without a tenant before them. */
import { invalidParams } from "../../model/errors.ts";
import type { OperationKind } from "../../model/operation.ts";

/** First segment of all paths, below the agent. */
export const HTTP_PREFIX = "rest";

export type Method = "GET" | "POST" | "DELETE";
type Methods = Readonly<Partial<Record<Method, OperationKind>>>;

/**
 * Order matters: a verb after a colon comes before the id it would otherwise be taken for. Subscribing is GET in the
 * proto and POST in the prose.
 */
const ROUTES: readonly (readonly [path: string, methods: Methods])[] = [
  ["/message:send", { POST: "send" }],
  ["/message:stream", { POST: "stream" }],
  ["/tasks", { GET: "list" }],
  ["/tasks/{id}:cancel", { POST: "cancel" }],
  ["/tasks/{id}:subscribe", { GET: "subscribe", POST: "subscribe" }],
  ["/tasks/{id}", { GET: "get" }],
  ["/tasks/{taskId}/pushNotificationConfigs", { GET: "push-list", POST: "push-create" }],
  ["/tasks/{taskId}/pushNotificationConfigs/{id}", { GET: "push-get", DELETE: "push-delete" }],
  ["/extendedAgentCard", { GET: "extended-card" }],
];

export interface Place {
  readonly methods: Methods;
  /** For the header of an answer to a method that is not there. */
  readonly allow: string;
  /** What the path names: `tenant`, `id`, `taskId`. */
  readonly named: Readonly<Record<string, string>>;
}

interface Pattern {
  readonly expression: RegExp;
  readonly names: readonly string[];
  readonly methods: Methods;
  readonly allow: string;
}

const PATTERNS: readonly Pattern[] = [
  ...ROUTES.map(([path, methods]) => compile(path, methods)),
  ...ROUTES.map(([path, methods]) => compile(`/{tenant}${path}`, methods)),
];

const NOTHING: Readonly<Record<string, string>> = Object.freeze({});

const FIXED: ReadonlyMap<string, Place> = new Map(
  ROUTES.filter(([path]) => !path.includes("{")).map(([path, methods]) => [
    path,
    { methods, allow: allowed(methods), named: NOTHING },
  ]),
);

function compile(path: string, methods: Methods): Pattern {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  // Some URL builders encode the colon before a verb.
  const source = path.replace(/^(.*\/message):/, "$1(?::|%3[aA])").replace(/\{\w+\}/g, "([^/]+)");
  return { expression: new RegExp(`^${source}/?$`), names, methods, allow: allowed(methods) };
}

function allowed(methods: Methods): string {
  return Object.keys(methods)
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    .join(", ");
}

/** `target` is still percent-encoded; its first slash may be missing. */
export function findPlace(target: string): Place | undefined {
  const path = target.startsWith("/") ? target : `/${target}`;
  const fixed = FIXED.get(path);
  if (fixed !== undefined) return fixed;
  for (const { expression, names, methods, allow } of PATTERNS) {
    const match = expression.exec(path);
    if (match !== null) return { methods, allow, named: decodeNames(names, match) };
  }
  return undefined;
}

function decodeNames(names: readonly string[], match: RegExpExecArray): Readonly<Record<string, string>> {
  const named: Record<string, string> = {};
  names.forEach((name, at) => {
    named[name] = decodeSegment(name, match[at + 1] as string);
  });
  return named;
}

function decodeSegment(name: string, segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw invalidParams(name, "is not properly percent-encoded in the path");
  }
}
