/** Paths of the HTTP+JSON binding, from the proto's annotations. */
import { compileRoutes, type Methods, type Route } from "../shared/http/routes.ts";

/** First segments of all paths, relative to the agent. Clients append the second to the URL of the interface. */
export const HTTP_PREFIX = "rest/v1";

const CONFIGS: Methods = { GET: "push-list", POST: "push-create" };
const CONFIG: Methods = { GET: "push-get", DELETE: "push-delete" };

/**
 * Path parameters are `id` and `configId`. Subscribing is GET in the proto and POST in the prose; the proto has `task` once instead of `tasks`; push configs had
 * another name before 0.2.5.
 */
export const matchRoute = compileRoutes([
  ["/message:send", { POST: "send" }],
  ["/message:stream", { POST: "stream" }],
  ["/card", { GET: "extended-card" }],
  ["/tasks", { GET: "list" }],
  ["/tasks/{id}:cancel", { POST: "cancel" }],
  ["/tasks/{id}:subscribe", { GET: "subscribe", POST: "subscribe" }],
  ["/tasks/{id}", { GET: "get" }],
  ...["tasks", "task"].flatMap((tasks) =>
    ["pushNotificationConfigs", "pushNotifications"].flatMap((configs): Route[] => [
      [`/${tasks}/{id}/${configs}`, CONFIGS],
      [`/${tasks}/{id}/${configs}/{configId}`, CONFIG],
    ]),
  ),
]);
