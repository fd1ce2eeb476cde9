import { type Fields, fieldsOf, isObject } from "../../../core/model/json.ts";
import { PeerError } from "../check.ts";
import { parseJson, show, textOf } from "../json.ts";
import type { Observations } from "../observations.ts";
import { nameOfCode, readDetails } from "./errors.ts";
import { createHttpClient, type FullResponse, type HttpRequest } from "./http-client.ts";
import {
  type CallOptions,
  type CallResult,
  type JsonRpcPeer,
  type OperationName,
  type PeerOptions,
  requestHeaders,
  type Target,
  type WireError,
  withQuery,
  withTenant,
} from "./peer.ts";
import { translationFor } from "./translate.ts";

const METHODS_V03: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "message/send",
  SendStreamingMessage: "message/stream",
  GetTask: "tasks/get",
  CancelTask: "tasks/cancel",
  SubscribeToTask: "tasks/resubscribe",
  CreateTaskPushNotificationConfig: "tasks/pushNotificationConfig/set",
  GetTaskPushNotificationConfig: "tasks/pushNotificationConfig/get",
  ListTaskPushNotificationConfigs: "tasks/pushNotificationConfig/list",
  DeleteTaskPushNotificationConfig: "tasks/pushNotificationConfig/delete",
  GetExtendedAgentCard: "agent/getAuthenticatedExtendedCard",
};

export function createJsonRpcPeer(target: Target, options: PeerOptions, observations: Observations): JsonRpcPeer {
  const { version } = target;
  const { log } = observations;
  const client = createHttpClient(log, options.limits, options.fetch);
  const translation = translationFor(version, "JSONRPC");
  let lastId = 0;

  const methodOf = (operation: OperationName): string =>
    version === "1.0" ? operation : (METHODS_V03[operation] ?? operation);

  function post(body: string, accept: string, callOptions: CallOptions = {}): HttpRequest {
    const own = { "Content-Type": "application/json", Accept: accept };
    const url = withQuery(new URL(target.url), callOptions.as === undefined ? options.query : []);
    return { method: "POST", url, headers: requestHeaders(version, options, own, callOptions), body };
  }

  function envelope(operation: OperationName, params: Fields): { readonly id: string; readonly body: string } {
    lastId += 1;
    const id = `conformance-${lastId}`;
    const wireParams = translation.encodeRequest(operation, withTenant(params, target));
    return { id, body: JSON.stringify({ jsonrpc: "2.0", id, method: methodOf(operation), params: wireParams }) };
  }

  /** A response, in full or in an event; its fault is recorded. */
  function readResponse(text: string, id: string, httpStatus: number) {
    const response = parseResponse(text);
    const fault = envelopeFault(response, id);
    observations.record("JSONRPC-FMT-001", fault);
    const error = "error" in response ? readError(response.error, httpStatus) : undefined;
    if (error !== undefined) observations.recordRefusal(error);
    return { response, fault, error };
  }

  function readFull(operation: OperationName, id: string, answer: FullResponse): CallResult {
    const { error, response } = readResponse(answer.text, id, answer.status);
    if (error === undefined && !("result" in response))
      throw new PeerError(`neither result nor error: ${show(answer.text)}`);
    observations.recordContentType(answer.contentType);
    if (error !== undefined) return { ok: false, error };
    const { result: wire } = response;
    observations.recordResult(operation, wire);
    return { ok: true, wire, result: translation.decodeResult(operation, wire), headers: answer.headers };
  }

  return {
    binding: "JSONRPC",
    target,
    log,
    supports: (operation) => version === "1.0" || METHODS_V03[operation] !== undefined,
    methodOf,

    async call(operation, params, callOptions) {
      const { body, id } = envelope(operation, params);
      return readFull(operation, id, await client.exchange(post(body, "application/json", callOptions)));
    },

    async open(operation, params, callOptions) {
      const { body, id } = envelope(operation, params);
      const request = post(body, "text/event-stream, application/json", callOptions);
      const answer = await client.open(request, (data, _event, status) => {
        const { error, fault, response } = readResponse(data, id, status);
        if (error !== undefined) return { event: {}, wire: response.error, error };
        observations.recordEvent(response.result, fault);
        return { event: translation.decodeEvent(response.result), wire: response.result };
      });
      if ("frames" in answer) return answer;
      const full = readFull(operation, id, answer);
      if (!full.ok) return full;
      throw new PeerError(`a stream was asked for, and one answer came: ${show(full.wire)}`);
    },

    post: (body) => client.exchange(post(body, "application/json")),
  };
}

function parseResponse(text: string): Fields {
  const value = parseJson(text);
  if (value === undefined) throw new PeerError(`the answer is not JSON: ${show(text)}`);
  if (!isObject(value)) throw new PeerError(`the answer is not a JSON-RPC response: ${show(text)}`);
  return value;
}

/** What is wrong with a response to the request of that id. */
function envelopeFault(response: Fields, id: string): string | undefined {
  if (response.jsonrpc !== "2.0") return `jsonrpc is ${show(response.jsonrpc)}, not "2.0"`;
  if (response.id !== id) return `the id is ${show(response.id)}, not that of the request, ${show(id)}`;
  if ("result" in response && "error" in response) return "the response has both result and error";
  if (!("result" in response) && !("error" in response)) return "the response has neither result nor error";
  return undefined;
}

function readError(wire: unknown, httpStatus: number): WireError {
  const { code, data, message } = fieldsOf(wire);
  const { reason, ...details } = readDetails(data, "error.data");
  const number = typeof code === "number" ? code : 0;
  const messageFault = typeof message === "string" ? undefined : `error.message is ${show(message)}`;
  return {
    name: reason ?? nameOfCode(number),
    code: number,
    httpStatus,
    message: textOf(message) ?? "",
    fault: Number.isInteger(code) ? messageFault : `error.code is ${show(code)}`,
    ...details,
  };
}
