import { isObject } from "../../model/json.ts";
import { PeerError } from "../check.ts";
import { ExchangeLog } from "../exchange-log.ts";
import { type Fields, fieldsOf, listOf, show, textOf } from "../json.ts";
import type { Version } from "../requirements.ts";
import { nameOfCode, readDetails } from "./errors.ts";
import { openEvents } from "./event-stream.ts";
import { type FullResponse, HttpClient, type HttpRequest, mergeHeaders } from "./http-client.ts";
import {
  type CallFailure,
  type CallOptions,
  type CallResult,
  callerHeaders,
  defaultHeaders,
  type ErrorFault,
  type Frame,
  type HttpPeer,
  type Observer,
  type OpenStream,
  type OperationName,
  type PeerOptions,
  type StreamingName,
  type Target,
  TRANSLATION_V1,
  type Translation,
  type WireError,
  withQuery,
  withTenant,
} from "./peer.ts";
import { TRANSLATION_V03_PROTO } from "./translate-v03-proto.ts";

/** Where operations are in HTTP+JSON. Members in braces come from the request and stand in the path. */

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

function hasRoute(operation: OperationName, version: Version): boolean {
  return version === "1.0" || ROUTES_V03[operation] !== undefined;
}

export function routeOf(operation: OperationName, params: Fields, version: Version): Route {
  return version === "1.0" ? routeV1(operation, params) : routeV03(operation, params);
}

function routeV1(operation: OperationName, params: Fields): Route {
  const { tenant, ...rest } = params;
  const [method = "", template = ""] = ROUTES_V1[operation].split(" ");
  const { path, unused } = fillTemplate(template, rest);
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(String(tenant))}`;
  return { method, path: `${prefix}${path}`, ...toQueryOrBody(method, unused) };
}

function routeV03(operation: OperationName, params: Fields): Route {
  const [method = "", template = ""] = (ROUTES_V03[operation] ?? "GET /v1/unknown").split(" ");
  const { path, unused } = fillTemplate(template, params);
  if (operation === "SendMessage" || operation === "SendStreamingMessage") {
    return { method, path, ...toQueryOrBody(method, TRANSLATION_V03_PROTO.encodeRequest(operation, params)) };
  }
  if (operation === "CreateTaskPushNotificationConfig") {
    // The proto maps one member of the request to the body, not the request.
    const { config } = TRANSLATION_V03_PROTO.encodeRequest(operation, params);
    return { method, path, ...toQueryOrBody(method, fieldsOf(config)) };
  }
  const { tenant: _tenant, ...rest } = unused;
  return { method, path, ...toQueryOrBody(method, rest) };
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

function httpTranslation(version: Version): Translation {
  return version === "1.0" ? TRANSLATION_V1 : TRANSLATION_V03_PROTO;
}

const MEDIA_TYPES = { "1.0": "application/a2a+json", "0.3": "application/json" } as const satisfies Record<
  Version,
  string
>;

export function createHttpPeer(target: Target, options: PeerOptions, observer: Observer): HttpPeer {
  const { version } = target;
  const log = new ExchangeLog(options.secrets);
  const client = new HttpClient(log, options.requestTimeoutMs, options.signal);
  const translation = httpTranslation(version);
  const base = baseOf(target);
  const standing = defaultHeaders(version, options);
  const mediaType = MEDIA_TYPES[version];

  function request(
    method: string,
    path: string,
    query: readonly (readonly [string, string])[],
    body: string | undefined,
    accept: string,
    callOptions: CallOptions = {},
  ): HttpRequest {
    const { as, headers = {} } = callOptions;
    const url = withQuery(new URL(`${base}${path}`), [...query, ...(as === undefined ? options.query : [])]);
    const type = body === undefined ? {} : { "Content-Type": mediaType };
    const all = mergeHeaders(standing, type, { Accept: accept }, ...callerHeaders(options, as), headers);
    return { method, url, headers: all, ...(body === undefined ? {} : { body }) };
  }

  function operationRequest(operation: OperationName, params: Fields, accept: string, callOptions?: CallOptions) {
    const { body, method, path, query } = routeOf(operation, withTenant(params, target), version);
    return request(method, path, query, body, accept, callOptions);
  }

  function readWhole(operation: OperationName, answer: FullResponse): CallResult {
    const { contentType, headers, status, text } = answer;
    if (status < 200 || status >= 300) {
      const error = readHttpError(status, text);
      observer.refusal(error);
      observer.contentType("error", contentType);
      return { ok: false, error, contentType };
    }
    const wire = status === 204 || text.trim() === "" ? null : parse(text);
    if (wire !== null) observer.contentType("whole", contentType);
    observer.result(operation, wire);
    return { ok: true, wire, result: translation.decodeResult(operation, wire), headers, contentType };
  }

  return {
    binding: "HTTP+JSON",
    target,
    log,
    supports: (operation) => hasRoute(operation, version),

    async call(operation, params, callOptions) {
      return readWhole(operation, await client.exchange(operationRequest(operation, params, mediaType, callOptions)));
    },

    async open(operation: StreamingName, params, callOptions): Promise<OpenStream | CallFailure> {
      const accept = `text/event-stream, ${mediaType}`;
      const answer = await client.send(operationRequest(operation, params, accept, callOptions));
      if (answer.contentType !== "text/event-stream") {
        const whole = readWhole(operation, await client.readFull(answer));
        if (!whole.ok) return whole;
        throw new PeerError(`a stream was asked for, and one answer came: ${show(whole.wire)}`);
      }
      observer.contentType("stream", answer.contentType);
      return openEvents(client, answer, (data, event): Frame => {
        const wire = parse(data);
        // The specification does not define how a stream fails half-way in this binding; both forms in use are accepted.
        if (event === "error" || (isObject(wire) && "error" in wire)) {
          const error = readHttpError(answer.status, data);
          observer.refusal(error);
          return { event: {}, wire, error };
        }
        const enveloped = isObject(wire) && "jsonrpc" in wire;
        observer.frame(wire, enveloped ? "an event has an envelope around it" : undefined);
        return { event: translation.decodeEvent(wire), wire };
      });
    },

    request: (method, path, body, callOptions) =>
      client.exchange(request(method, path, [], body, mediaType, callOptions)),
    close: () => client.close(),
  };
}

/** Paths are below the interface's URL; a 0.3 card may have `/v1` in it already. */
function baseOf({ url, version }: Target): string {
  const base = url.replace(/\/+$/, "");
  return version === "0.3" ? base.replace(/\/v1$/, "") : base;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new PeerError(`the answer is not JSON: ${show(text)}`);
  }
}

/** A `google.rpc.Status` in its HTTP form, or the code and message that 0.3 servers send. */
function readHttpError(status: number, text: string): WireError {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const outer = fieldsOf(body);
  const faults: ErrorFault[] = [];
  const { code, details, message, status: statusName } = fieldsOf(outer.error);
  if (!isObject(outer.error)) {
    faults.push({ rule: "status-body", text: `the body has no error object: ${show(text)}` });
  } else {
    if (code !== status)
      faults.push({ rule: "status-body", text: `error.code is ${show(code)}, the HTTP status ${status}` });
    if (typeof statusName !== "string" || !/^[A-Z_]+$/.test(statusName))
      faults.push({ rule: "status-body", text: `error.status is ${show(statusName)}` });
    if (typeof message !== "string") faults.push({ rule: "status-body", text: `error.message is ${show(message)}` });
    if (details !== undefined && !Array.isArray(details))
      faults.push({ rule: "detail-type", text: `error.details is not a list: ${show(details)}` });
  }
  const list = listOf(details ?? outer.data);
  const read = readDetails(list);
  const bareCode = typeof outer.code === "number" ? nameOfCode(outer.code) : undefined;
  return {
    name: read.reason ?? bareCode,
    code: status,
    httpStatus: status,
    message: textOf(message) ?? textOf(outer.message) ?? "",
    details: list,
    faults: [...faults, ...read.faults],
  };
}
