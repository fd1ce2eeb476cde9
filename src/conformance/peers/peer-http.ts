import { ExchangeLog } from "../evidence.ts";
import { type Fields, fieldsOf, isObject, listOf, show, textOf } from "../json.ts";
import { PeerFault } from "../outcome.ts";
import type { Version } from "../requirement.ts";
import { readDetails } from "./error-details.ts";
import { nameOfCode } from "./error-table.ts";
import { openEvents } from "./event-source.ts";
import { HttpClient, type HttpRequest, mergeHeaders, type WholeAnswer } from "./http-client.ts";
import { hasRoute, httpSpelling, routeOf } from "./http-routes.ts";
import {
  type Answer,
  type CallOptions,
  callerHeaders,
  type ErrorFault,
  type Frame,
  type HttpPeer,
  type OpenStream,
  type OperationName,
  type PeerOptions,
  type Refusal,
  type StreamingName,
  type Target,
  type WireError,
  type Witness,
} from "./peer.ts";
import { standingHeaders, withQuery, withTenant } from "./standing.ts";

const MEDIA_TYPES = { "1.0": "application/a2a+json", "0.3": "application/json" } as const satisfies Record<
  Version,
  string
>;

export function createHttpPeer(target: Target, options: PeerOptions, witness: Witness): HttpPeer {
  const { version } = target;
  const log = new ExchangeLog(options.secrets);
  const client = new HttpClient(log, options.requestTimeoutMs, options.signal);
  const spelling = httpSpelling(version);
  const base = baseOf(target);
  const standing = standingHeaders(version, options);
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

  function readWhole(operation: OperationName, answer: WholeAnswer): Answer {
    const { contentType, headers, status, text } = answer;
    if (status < 200 || status >= 300) {
      const error = readHttpError(status, text);
      witness.refusal(error);
      witness.contentType("error", contentType);
      return { ok: false, error, contentType };
    }
    const wire = status === 204 || text.trim() === "" ? null : parse(text);
    if (wire !== null) witness.contentType("whole", contentType);
    witness.result(operation, wire);
    return { ok: true, wire, result: spelling.result(operation, wire), headers, contentType };
  }

  return {
    binding: "HTTP+JSON",
    target,
    log,
    knows: (operation) => hasRoute(operation, version),

    async call(operation, params, callOptions) {
      return readWhole(operation, await client.exchange(operationRequest(operation, params, mediaType, callOptions)));
    },

    async open(operation: StreamingName, params, callOptions): Promise<OpenStream | Refusal> {
      const accept = `text/event-stream, ${mediaType}`;
      const answer = await client.send(operationRequest(operation, params, accept, callOptions));
      if (answer.contentType !== "text/event-stream") {
        const whole = readWhole(operation, await client.whole(answer));
        if (!whole.ok) return whole;
        throw new PeerFault(`a stream was asked for, and one answer came: ${show(whole.wire)}`);
      }
      witness.contentType("stream", answer.contentType);
      return openEvents(client, answer, (data, event): Frame => {
        const wire = parse(data);
        // Nobody has said how a stream fails half-way in this binding; both forms that are in use are understood.
        if (event === "error" || (isObject(wire) && "error" in wire)) {
          const error = readHttpError(answer.status, data);
          witness.refusal(error);
          return { event: {}, wire, error };
        }
        const enveloped = isObject(wire) && "jsonrpc" in wire;
        witness.frame(wire, enveloped ? "an event has an envelope around it" : undefined);
        return { event: spelling.event(wire), wire };
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
    throw new PeerFault(`the answer is no JSON: ${show(text)}`);
  }
}

/** A `google.rpc.Status` in its HTTP form, or the code and message that 0.3 servers send. */
export function readHttpError(status: number, text: string): WireError {
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
      faults.push({ rule: "detail-type", text: `error.details is no list: ${show(details)}` });
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
