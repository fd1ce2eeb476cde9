/** The paths of HTTP+JSON in 0.3, below `/v1`: those of the proto's annotations and those of clients that read them otherwise. */
import { invalidParams } from "../../model/errors.ts";
import type { OperationKind } from "../../model/operation.ts";

/** First segments of all paths, below the agent. Clients append the second to the URL of the interface. */
export const HTTP_PREFIX = "rest/v1";

export type Method = "GET" | "POST" | "DELETE";
type Methods = Readonly<Partial<Record<Method, OperationKind>>>;

const CONFIGS: Methods = { GET: "push-list", POST: "push-create" };
const CONFIG: Methods = { GET: "push-get", DELETE: "push-delete" };

/**
 * Order matters: a verb after a colon comes before the id it would otherwise be taken for. Subscribing is GET in the
 * proto and POST in the prose; the proto says `task` once where it means `tasks`; push configs had another name before
 * 0.2.5.
 */
const ROUTES: readonly (readonly [path: string, methods: Methods])[] = [
  ["/message:send", { POST: "send" }],
  ["/message:stream", { POST: "stream" }],
  ["/card", { GET: "extended-card" }],
  ["/tasks", { GET: "list" }],
  ["/tasks/{id}:cancel", { POST: "cancel" }],
  ["/tasks/{id}:subscribe", { GET: "subscribe", POST: "subscribe" }],
  ["/tasks/{id}", { GET: "get" }],
  ...["tasks", "task"].flatMap((tasks) =>
    ["pushNotificationConfigs", "pushNotifications"].flatMap((configs): [string, Methods][] => [
      [`/${tasks}/{id}/${configs}`, CONFIGS],
      [`/${tasks}/{id}/${configs}/{configId}`, CONFIG],
    ]),
  ),
];

export interface Place {
  readonly methods: Methods;
  /** For the header of an answer to a method that is not there. */
  readonly allow: string;
  /** What the path names. */
  readonly id: string | undefined;
  readonly configId: string | undefined;
}

interface Pattern {
  readonly expression: RegExp;
  readonly methods: Methods;
  readonly allow: string;
}

const PATTERNS: readonly Pattern[] = ROUTES.map(([path, methods]) => {
  // Some URL builders encode the colon before a verb.
  const source = path.replace("/message:", "/message(?::|%3[aA])").replace(/\{(\w+)\}/g, "(?<$1>[^/]+)");
  return { expression: new RegExp(`^${source}/?$`), methods, allow: allowed(methods) };
});

function allowed(methods: Methods): string {
  return Object.keys(methods)
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    .join(", ");
}

/** `target` is still percent-encoded; its first slash may be missing. */
export function findPlace(target: string): Place | undefined {
  const path = target.startsWith("/") ? target : `/${target}`;
  for (const { expression, methods, allow } of PATTERNS) {
    const match = expression.exec(path);
    if (match === null) continue;
    const { id, configId } = match.groups ?? {};
    return { methods, allow, id: decodeSegment("id", id), configId: decodeSegment("configId", configId) };
  }
  return undefined;
}

function decodeSegment(name: string, segment: string | undefined): string | undefined {
  if (segment === undefined) return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw invalidParams(name, "is not properly percent-encoded in the path");
  }
}
