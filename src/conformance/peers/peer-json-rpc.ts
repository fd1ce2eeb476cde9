import { isObject } from "../../model/json.ts";
import { PeerError } from "../check.ts";
import { ExchangeLog } from "../exchange-log.ts";
import { type Fields, fieldsOf, listOf, show, textOf } from "../json.ts";
import { type ErrorDetails, nameOfCode, readDetails } from "./errors.ts";
import { openEvents } from "./event-stream.ts";
import { type FullResponse, HttpClient, type HttpRequest, mergeHeaders } from "./http-client.ts";
import {
  type CallFailure,
  type CallOptions,
  type CallResult,
  callerHeaders,
  defaultHeaders,
  type Frame,
  type JsonRpcPeer,
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
import { METHODS_V03, TRANSLATION_V03_JSON } from "./translate-v03-json.ts";

export function createJsonRpcPeer(target: Target, options: PeerOptions, observer: Observer): JsonRpcPeer {
  const log = new ExchangeLog(options.secrets);
  const client = new HttpClient(log, options.requestTimeoutMs, options.signal);
  const translation: Translation = target.version === "1.0" ? TRANSLATION_V1 : TRANSLATION_V03_JSON;
  const url = new URL(target.url);
  const standing = { "Content-Type": "application/json", ...defaultHeaders(target.version, options) };
  let lastId = 0;

  const methodOf = (operation: OperationName): string =>
    target.version === "1.0" ? operation : (METHODS_V03[operation] ?? operation);

  function request(body: string | Uint8Array, accept: string, callOptions: CallOptions = {}): HttpRequest {
    const { as, headers = {} } = callOptions;
    const all = mergeHeaders(standing, { Accept: accept }, ...callerHeaders(options, as), headers);
    return { method: "POST", url: withQuery(url, as === undefined ? options.query : []), headers: all, body };
  }

  function envelope(operation: OperationName, params: Fields): { readonly id: string; readonly body: string } {
    lastId += 1;
    const id = `conformance-${lastId}`;
    const wireParams = translation.encodeRequest(operation, withTenant(params, target));
    return { id, body: JSON.stringify({ jsonrpc: "2.0", id, method: methodOf(operation), params: wireParams }) };
  }

  function readWhole(operation: OperationName, id: string, answer: FullResponse): CallResult {
    const response = parse(answer.text);
    const fault = envelopeFault(response, id);
    observer.envelope(fault);
    if ("error" in response) {
      const error = readError(response.error, answer.status);
      observer.refusal(error);
      observer.contentType("error", answer.contentType);
      return { ok: false, error, contentType: answer.contentType };
    }
    if (!("result" in response)) throw new PeerError(`neither result nor error: ${show(answer.text)}`);
    observer.contentType("whole", answer.contentType);
    observer.result(operation, response.result);
    return {
      ok: true,
      wire: response.result,
      result: translation.decodeResult(operation, response.result),
      headers: answer.headers,
      contentType: answer.contentType,
    };
  }

  return {
    binding: "JSONRPC",
    target,
    log,
    supports: (operation) => target.version === "1.0" || METHODS_V03[operation] !== undefined,
    methodOf,

    async call(operation, params, callOptions) {
      const { body, id } = envelope(operation, params);
      return readWhole(operation, id, await client.exchange(request(body, "application/json", callOptions)));
    },

    async open(operation: StreamingName, params, callOptions): Promise<OpenStream | CallFailure> {
      const { body, id } = envelope(operation, params);
      const answer = await client.send(request(body, "text/event-stream, application/json", callOptions));
      if (answer.contentType !== "text/event-stream") {
        const whole = readWhole(operation, id, await client.readFull(answer));
        if (!whole.ok) return whole;
        throw new PeerError(`a stream was asked for, and one answer came: ${show(whole.wire)}`);
      }
      observer.contentType("stream", answer.contentType);
      return openEvents(client, answer, (data): Frame => {
        const response = parse(data);
        const fault = envelopeFault(response, id);
        observer.envelope(fault);
        if ("error" in response) {
          const error = readError(response.error, answer.status);
          observer.refusal(error);
          return { event: {}, wire: response.error, error };
        }
        observer.frame(response.result, fault);
        return { event: translation.decodeEvent(response.result), wire: response.result };
      });
    },

    post: (body, callOptions) => client.exchange(request(body, "application/json", callOptions)),
    close: () => client.close(),
  };
}

function parse(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new PeerError(`the answer is not JSON: ${show(text)}`);
  }
  if (!isObject(value)) throw new PeerError(`the answer is not a JSON-RPC response: ${show(text)}`);
  return value;
}

/** What is wrong with a response to the request of that id. */
function envelopeFault(response: Fields, id: unknown): string | undefined {
  if (response.jsonrpc !== "2.0") return `jsonrpc is ${show(response.jsonrpc)}, not "2.0"`;
  if (response.id !== id) return `the id is ${show(response.id)}, not that of the request, ${show(id)}`;
  if ("result" in response && "error" in response) return "the response has both result and error";
  if (!("result" in response) && !("error" in response)) return "the response has neither result nor error";
  return undefined;
}

function readError(wire: unknown, httpStatus: number | undefined): WireError {
  const { code, data, message } = fieldsOf(wire);
  const faults: WireError["faults"][number][] = [];
  if (typeof code !== "number" || !Number.isInteger(code))
    faults.push({ rule: "envelope", text: `error.code is ${show(code)}` });
  if (typeof message !== "string") faults.push({ rule: "envelope", text: `error.message is ${show(message)}` });
  if (data !== undefined && !Array.isArray(data))
    faults.push({ rule: "detail-type", text: `error.data is not a list: ${show(data)}` });
  const details: ErrorDetails = readDetails(listOf(data));
  const number = typeof code === "number" ? code : 0;
  return {
    name: details.reason ?? nameOfCode(number),
    code: number,
    httpStatus,
    message: textOf(message) ?? "",
    details: listOf(data),
    faults: [...faults, ...details.faults],
  };
}
