/** Paths of the HTTP+JSON binding, from the proto's annotations, with and without a leading tenant. */
import { compileRoutes, type Route } from "../shared/http/routes.ts";

/** First segment of all paths, relative to the agent. */
export const HTTP_PREFIX = "rest";

/** Subscribing is GET in the proto and POST in the prose. */
const ROUTES: readonly Route[] = [
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

/** Path parameters are `tenant`, `id` and `taskId`. */
export const matchRoute = compileRoutes([
  ...ROUTES,
  ...ROUTES.map(([path, methods]): Route => [`/{tenant}${path}`, methods]),
]);
