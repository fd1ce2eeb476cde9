import { type Fields, fieldsOf, isObject } from "../../../core/model/json.ts";
import { PeerError } from "../check.ts";
import { parseJson, show, textOf } from "../json.ts";
import type { Observations } from "../observations.ts";
import type { Version } from "../requirements.ts";
import { nameOfCode, readDetails } from "./errors.ts";
import { createHttpClient, type FullResponse, type HttpRequest } from "./http-client.ts";
import {
  type CallOptions,
  type CallResult,
  type HttpPeer,
  type OperationName,
  type PeerOptions,
  requestHeaders,
  type Target,
  type WireError,
  withQuery,
  withTenant,
} from "./peer.ts";
import { translationFor } from "./translate.ts";

/** Routes of the HTTP+JSON binding. Names in braces are members of the request that move into the path. */
const ROUTES_V1 = {
  SendMessage: "POST /message:send",
  SendStreamingMessage: "POST /message:stream",
  GetTask: "GET /tasks/{id}",
  ListTasks: "GET /tasks",
  CancelTask: "POST /tasks/{id}:cancel",
  SubscribeToTask: "POST /tasks/{id}:subscribe",
  CreateTaskPushNotificationConfig: "POST /tasks/{taskId}/pushNotificationConfigs",
  GetTaskPushNotificationConfig: "GET /tasks/{taskId}/pushNotificationConfigs/{id}",
  ListTaskPushNotificationConfigs: "GET /tasks/{taskId}/pushNotificationConfigs",
  DeleteTaskPushNotificationConfig: "DELETE /tasks/{taskId}/pushNotificationConfigs/{id}",
  GetExtendedAgentCard: "GET /extendedAgentCard",
} as const satisfies Record<OperationName, string>;

/** The same below `/v1`, without lists and with another name for the card. */
const ROUTES_V03: Readonly<Partial<Record<OperationName, string>>> = Object.fromEntries(
  Object.entries({ ...ROUTES_V1, GetExtendedAgentCard: "GET /card" })
    .filter(([operation]) => operation !== "ListTasks")
    .map(([operation, route]) => [operation, route.replace(" /", " /v1/")]),
);

interface Route {
  readonly method: string;
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
  readonly body: string | undefined;
}

/** 1.0 names the tenant in the path. In 0.3 a body has the proto's form; it has no other use for the tenant. */
export function routeOf(operation: OperationName, params: Fields, version: Version): Route {
  const { tenant, ...rest } = params;
  const route = version === "1.0" ? ROUTES_V1[operation] : (ROUTES_V03[operation] ?? "GET /v1/unknown");
  const [method = "", template = ""] = route.split(" ");
  const { path, unused } = fillTemplate(template, rest);
  const prefix = version === "0.3" || tenant === undefined ? "" : `/${encodeURIComponent(String(tenant))}`;
  const content = version === "0.3" ? bodyV03(operation, rest) : undefined;
  return { method, path: `${prefix}${path}`, ...toQueryOrBody(method, content ?? unused) };
}

/** Where it differs from the members that are not in the path. */
function bodyV03(operation: OperationName, params: Fields): Fields | undefined {
  const encoded = translationFor("0.3", "HTTP+JSON").encodeRequest(operation, params);
  if (operation === "SendMessage" || operation === "SendStreamingMessage") return encoded;
  // The proto maps one member of the request to the body, not the request.
  return operation === "CreateTaskPushNotificationConfig" ? fieldsOf(encoded.config) : undefined;
}

function fillTemplate(template: string, params: Fields): { readonly path: string; readonly unused: Fields } {
  const unused = { ...params };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = unused[name];
    delete unused[name];
    return encodeURIComponent(String(value ?? ""));
  });
  return { path, unused };
}

function toQueryOrBody(method: string, params: Fields): Pick<Route, "body" | "query"> {
  if (method === "POST") return { query: [], body: JSON.stringify(params) };
  const members = Object.entries(params).filter(([, value]) => value !== undefined);
  return { query: members.map(([name, value]) => [name, String(value)] as const), body: undefined };
}

const MEDIA_TYPES = { "1.0": "application/a2a+json", "0.3": "application/json" } as const satisfies Record<
  Version,
  string
>;

export function createHttpPeer(target: Target, options: PeerOptions, observations: Observations): HttpPeer {
  const { version } = target;
  const { log } = observations;
  const client = createHttpClient(log, options.limits, options.fetch);
  const translation = translationFor(version, "HTTP+JSON");
  const base = baseOf(target);
  const mediaType = MEDIA_TYPES[version];

  function toRequest(
    { body, method, path, query }: Route,
    accept: string = mediaType,
    callOptions: CallOptions = {},
  ): HttpRequest {
    const credentials = callOptions.as === undefined ? options.query : [];
    const own = { ...(body === undefined ? {} : { "Content-Type": mediaType }), Accept: accept };
    const url = withQuery(new URL(`${base}${path}`), [...query, ...credentials]);
    return { method, url, headers: requestHeaders(version, options, own, callOptions), body };
  }

  const routeTo = (operation: OperationName, params: Fields) => routeOf(operation, withTenant(params, target), version);

  function readFull(operation: OperationName, answer: FullResponse): CallResult {
    const { contentType, headers, status, text } = answer;
    if (status < 200 || status >= 300) {
      const error = readHttpError(status, text);
      observations.recordRefusal(error);
      observations.recordContentType(contentType);
      return { ok: false, error };
    }
    const wire = status === 204 || text.trim() === "" ? null : parse(text);
    if (wire !== null) observations.recordContentType(contentType);
    observations.recordResult(operation, wire);
    return { ok: true, wire, result: translation.decodeResult(operation, wire), headers };
  }

  return {
    binding: "HTTP+JSON",
    target,
    log,
    supports: (operation) => version === "1.0" || ROUTES_V03[operation] !== undefined,

    async call(operation, params, callOptions) {
      const send = async (route: Route) =>
        readFull(operation, await client.exchange(toRequest(route, mediaType, callOptions)));
      const route = routeTo(operation, params);
      const answer = await send(route);
      const isOtherForm = version === "0.3" && operation === "CreateTaskPushNotificationConfig";
      if (answer.ok || answer.error.code !== 400 || !isOtherForm) return answer;
      // Text and proto of 0.3 differ in whether the config or the whole request is the body; servers accept one or both.
      return send({ ...route, body: JSON.stringify(translation.encodeRequest(operation, params)) });
    },

    async open(operation, params, callOptions) {
      const request = toRequest(routeTo(operation, params), `text/event-stream, ${mediaType}`, callOptions);
      const answer = await client.open(request, (data, event, status) => {
        const wire = parse(data);
        // The specification does not define how a stream fails half-way in this binding; both forms in use are accepted.
        if (event === "error" || (isObject(wire) && "error" in wire)) {
          const error = readHttpError(status, data);
          observations.recordRefusal(error);
          return { event: {}, wire, error };
        }
        const enveloped = isObject(wire) && "jsonrpc" in wire;
        observations.recordEvent(wire, enveloped ? "an event has an envelope around it" : undefined);
        return { event: translation.decodeEvent(wire), wire };
      });
      if ("frames" in answer) return answer;
      const full = readFull(operation, answer);
      if (!full.ok) return full;
      throw new PeerError(`a stream was asked for, and one answer came: ${show(full.wire)}`);
    },

    request: (method, path, body) => client.exchange(toRequest({ method, path, query: [], body })),
  };
}

/** Paths are below the interface's URL; a 0.3 card may have `/v1` in it already. */
function baseOf({ url, version }: Target): string {
  const base = url.replace(/\/+$/, "");
  return version === "0.3" ? base.replace(/\/v1$/, "") : base;
}

function parse(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new PeerError(`the answer is not JSON: ${show(text)}`);
  return value;
}

/** A `google.rpc.Status` in its HTTP form, or the code and message that 0.3 servers send. */
function readHttpError(status: number, text: string): WireError {
  const outer = fieldsOf(parseJson(text));
  const { details, message } = fieldsOf(outer.error);
  const { reason, ...read } = readDetails(details ?? outer.data, "error.details");
  return {
    name: reason ?? (typeof outer.code === "number" ? nameOfCode(outer.code) : undefined),
    code: status,
    httpStatus: status,
    message: textOf(message) ?? textOf(outer.message) ?? "",
    fault: isObject(outer.error) ? statusFault(outer.error, status) : `the body has no error object: ${show(text)}`,
    ...read,
  };
}

function statusFault({ code, message, status: name }: Fields, status: number): string | undefined {
  if (code !== status) return `error.code is ${show(code)}, the HTTP status ${status}`;
  if (typeof name !== "string" || !/^[A-Z_]+$/.test(name)) return `error.status is ${show(name)}`;
  return typeof message === "string" ? undefined : `error.message is ${show(message)}`;
}
