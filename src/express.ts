import type { IncomingMessage, ServerResponse } from "node:http";
import { checkServeOptions, requirePublicUrl } from "./core/server/check-options.ts";
import { createCore } from "./core/server/core.ts";
import { serveNodeRequest } from "./core/server/http/node-http.ts";
import type { ServeOptions as CoreServeOptions } from "./core/server/options.ts";
import "./features.ts";
import type { FeatureSections } from "./features.ts";

type ServeOptions = CoreServeOptions & FeatureSections;

export type ExpressMiddleware = ((request: IncomingMessage, response: ServerResponse, next?: () => void) => void) & {
  close(): Promise<void>;
};

/**
 * Middleware for Express and other frameworks that pass on Node's own request and response. `publicUrl` is required and
 * includes the path it is mounted at: `app.use("/a2a", await dragoman({ … }))`. Requests for other paths are passed to
 * the next handler.
 */
export async function dragoman(options: ServeOptions & { readonly publicUrl: string }): Promise<ExpressMiddleware> {
  await checkServeOptions("dragoman", options);
  const baseUrl = requirePublicUrl("dragoman", options);
  const core = await createCore(options, { baseUrl: () => baseUrl, grpc: () => undefined });
  const middleware = (request: IncomingMessage, response: ServerResponse, next?: () => void) => {
    const [path = "/"] = (request.url ?? "/").split("?", 1);
    if (next !== undefined && !core.router.serves(request.method ?? "GET", path)) next();
    else serveNodeRequest(core.http, request, response, request.url);
  };
  return Object.assign(middleware, { close: () => core.close() });
}
