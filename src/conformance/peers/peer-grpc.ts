import { createGrpcCarrier, type RpcAnswer } from "../../client/transport/grpc-carrier.ts";
import { type GrpcAddress, parseGrpcAddress } from "../../client/transport/grpc-channels.ts";
import { CarrierError } from "../../wire/exchange.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { PeerError } from "../check.ts";
import { type Exchange, ExchangeLog } from "../exchange-log.ts";
import { fieldsOf } from "../json.ts";
import type { Version } from "../requirements.ts";
import { decodeStatusDetails, readDetails } from "./errors.ts";
import { FrameQueue } from "./event-stream.ts";
import { mergeHeaders, timeoutMessage } from "./http-client.ts";
import {
  type CallFailure,
  type CallOptions,
  type CallResult,
  callerHeaders,
  defaultHeaders,
  type Frame,
  type GrpcPeer,
  type Observer,
  type OpenStream,
  type OperationName,
  type PeerOptions,
  type StreamingName,
  type Target,
  TRANSLATION_V1,
  type Translation,
  type WireError,
  withTenant,
} from "./peer.ts";
import { TRANSLATION_V03_PROTO } from "./translate-v03-proto.ts";

/** The methods of both gRPC services, with the messages they take and give. */

const RPC_SERVICES = {
  "1.0": "lf.a2a.v1.A2AService",
  "0.3": "a2a.v1.A2AService",
} as const satisfies Record<Version, string>;

interface RpcMethod {
  readonly method: string;
  readonly request: string;
  readonly reply: string;
}

const rpcMethod = (method: string, request: string, reply: string): RpcMethod => ({ method, request, reply });

const COMMON_METHODS = {
  SendMessage: rpcMethod("SendMessage", "SendMessageRequest", "SendMessageResponse"),
  SendStreamingMessage: rpcMethod("SendStreamingMessage", "SendMessageRequest", "StreamResponse"),
  GetTask: rpcMethod("GetTask", "GetTaskRequest", "Task"),
  CancelTask: rpcMethod("CancelTask", "CancelTaskRequest", "Task"),
  GetTaskPushNotificationConfig: rpcMethod(
    "GetTaskPushNotificationConfig",
    "GetTaskPushNotificationConfigRequest",
    "TaskPushNotificationConfig",
  ),
  DeleteTaskPushNotificationConfig: rpcMethod(
    "DeleteTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfigRequest",
    "Empty",
  ),
};

const RPC_METHODS: Readonly<Record<Version, Readonly<Partial<Record<OperationName, RpcMethod>>>>> = {
  "1.0": {
    ...COMMON_METHODS,
    ListTasks: rpcMethod("ListTasks", "ListTasksRequest", "ListTasksResponse"),
    SubscribeToTask: rpcMethod("SubscribeToTask", "SubscribeToTaskRequest", "StreamResponse"),
    CreateTaskPushNotificationConfig: rpcMethod(
      "CreateTaskPushNotificationConfig",
      "TaskPushNotificationConfig",
      "TaskPushNotificationConfig",
    ),
    ListTaskPushNotificationConfigs: rpcMethod(
      "ListTaskPushNotificationConfigs",
      "ListTaskPushNotificationConfigsRequest",
      "ListTaskPushNotificationConfigsResponse",
    ),
    GetExtendedAgentCard: rpcMethod("GetExtendedAgentCard", "GetExtendedAgentCardRequest", "AgentCard"),
  },
  "0.3": {
    ...COMMON_METHODS,
    SubscribeToTask: rpcMethod("TaskSubscription", "TaskSubscriptionRequest", "StreamResponse"),
    CreateTaskPushNotificationConfig: rpcMethod(
      "CreateTaskPushNotificationConfig",
      "CreateTaskPushNotificationConfigRequest",
      "TaskPushNotificationConfig",
    ),
    ListTaskPushNotificationConfigs: rpcMethod(
      "ListTaskPushNotificationConfig",
      "ListTaskPushNotificationConfigRequest",
      "ListTaskPushNotificationConfigResponse",
    ),
    GetExtendedAgentCard: rpcMethod("GetAgentCard", "GetAgentCardRequest", "AgentCard"),
  },
};

/** The bytes of a version's messages, by their names without the package; values are in the JSON form. */
export interface MessageCodec {
  encode(message: string, value: unknown): Uint8Array;
  decode(message: string, bytes: Uint8Array): unknown;
}

const CONTENT_TYPE = "application/grpc";
const STATUS_DETAILS_HEADER = "grpc-status-details-bin";

/** The client's carrier loads the library when it is first called. */
export function createGrpcPeer(
  target: Target,
  options: PeerOptions,
  observer: Observer,
  codec: MessageCodec,
): GrpcPeer {
  const { version } = target;
  const log = new ExchangeLog(options.secrets);
  const translation: Translation = version === "1.0" ? TRANSLATION_V1 : TRANSLATION_V03_PROTO;
  const standing = defaultHeaders(version, options);
  const address = parseAddress(target.url);
  const carrier = createGrpcCarrier({ insecure: options.insecure });
  const timeoutMs = options.requestTimeoutMs;
  const limits = { signal: options.signal, timeoutMs, silenceMs: timeoutMs };

  /** The call, and where it is logged. */
  function begin(method: string, message: Uint8Array, body: string, { as, headers = {} }: CallOptions = {}) {
    const sent = mergeHeaders(standing, ...callerHeaders(options, as), headers);
    const metadata = Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), value]));
    const service = RPC_SERVICES[version];
    const exchange = log.recordRequest(`${target.url} ${service}/${method}`, Object.entries(metadata), body);
    return { call: { service, method, metadata, message }, exchange };
  }

  /** Throws what is not an answer of the server. */
  function refused(error: unknown, exchange: Exchange): CallFailure {
    if (!(error instanceof RpcStatusError)) {
      const { message } = toPeerError(error, options);
      log.recordResponse(exchange, message);
      throw new PeerError(message);
    }
    const { code, details, message } = error.status;
    log.recordResponse(exchange, `${code} ${nameOfStatus(code)}`);
    log.appendBody(exchange, message);
    if (code === RPC_CODES.UNAVAILABLE && details === undefined) throw new PeerError(message);
    const read = readRpcError(code, message, details);
    log.appendBody(exchange, read.details.length === 0 ? "" : ` ${JSON.stringify(read.details)}`);
    observer.refusal(read);
    return { ok: false, error: read, contentType: CONTENT_TYPE };
  }

  async function answer(
    operation: OperationName,
    method: string,
    reply: string,
    bytes: Uint8Array,
    body: string,
    callOptions?: CallOptions,
  ): Promise<CallResult> {
    const { call, exchange } = begin(method, bytes, body, callOptions);
    let got: RpcAnswer;
    try {
      got = await carrier.unary(address, call, limits);
    } catch (error) {
      return refused(error, exchange);
    }
    log.recordResponse(exchange, "0 OK");
    const wire = decodeReply(codec, reply, got.message);
    log.appendBody(exchange, JSON.stringify(wire));
    observer.result(operation, wire);
    const result = translation.decodeResult(operation, wire);
    return { ok: true, wire, result, headers: got.metadata, contentType: CONTENT_TYPE };
  }

  return {
    binding: "GRPC",
    target,
    log,
    supports: (operation) => RPC_METHODS[version][operation] !== undefined,

    async call(operation, params, callOptions) {
      const { method, reply, request } = methodOf(operation, version);
      const value = translation.encodeRequest(operation, withTenant(params, target));
      return answer(operation, method, reply, codec.encode(request, value), JSON.stringify(value), callOptions);
    },

    async open(operation: StreamingName, params, callOptions): Promise<OpenStream | CallFailure> {
      const { method, reply, request } = methodOf(operation, version);
      const value = translation.encodeRequest(operation, withTenant(params, target));
      const { call, exchange } = begin(method, codec.encode(request, value), JSON.stringify(value), callOptions);
      const stream = carrier.stream(address, call, limits);
      let step: IteratorResult<readonly Uint8Array[], void>;
      try {
        step = await stream.messages.next();
      } catch (error) {
        return refused(error, exchange);
      }
      log.recordResponse(exchange, "a stream");
      const frames = new FrameQueue<Frame>(timeoutMs, () => stream.cancel());
      const read = (bytes: Uint8Array): void => {
        const wire = decodeReply(codec, reply, bytes);
        log.appendBody(exchange, `${JSON.stringify(wire)}\n`);
        observer.frame(wire);
        frames.push({ event: translation.decodeEvent(wire), wire });
      };
      const readAll = async (): Promise<void> => {
        try {
          for (; step.done !== true; step = await stream.messages.next()) step.value.forEach(read);
          frames.end();
        } catch (error) {
          stream.cancel();
          frames.end(error instanceof PeerError ? error : new PeerError(`the stream broke: ${String(error)}`));
        }
      };
      void readAll();
      return { ok: "stream", frames, contentType: CONTENT_TYPE };
    },

    unary: (method, bytes, callOptions) =>
      answer("GetTask", method, "Task", bytes, Buffer.from(bytes).toString("hex"), callOptions),
    // Its connections close by themselves, and keep no process.
    close() {},
  };
}

function toPeerError(error: unknown, { requestTimeoutMs, signal }: PeerOptions): PeerError {
  if (signal.aborted) return new PeerError("the run has ended");
  if (!(error instanceof CarrierError)) throw error;
  if (error.code === "timeout") return new PeerError(timeoutMessage(requestTimeoutMs));
  return new PeerError(error.cause instanceof Error ? error.cause.message : error.message);
}

function nameOfStatus(code: number): string {
  return Object.entries(RPC_CODES).find(([, value]) => value === code)?.[0] ?? "";
}

function methodOf(operation: OperationName, version: Version) {
  const row = RPC_METHODS[version][operation];
  if (row === undefined) throw new PeerError(`${operation} does not exist in ${version}`);
  return row;
}

function decodeReply(codec: MessageCodec, message: string, bytes: Uint8Array): unknown {
  try {
    return message === "Empty" ? null : codec.decode(message, bytes);
  } catch {
    throw new PeerError(`the answer is not a ${message}`);
  }
}

/** Cards give `host:port`, some an URL. Without a scheme only the port of TLS is encrypted. */
function parseAddress(url: string): GrpcAddress {
  const address = parseGrpcAddress(url, { tls: /:443$/.test(url) });
  if (address === undefined) throw new PeerError(`${url} is not the address of a gRPC endpoint`);
  return address;
}

function readRpcError(code: number, message: string, encoded: Uint8Array | undefined): WireError {
  const details = encoded === undefined ? [] : decodeStatusDetails(encoded);
  const faults: WireError["faults"] =
    details === undefined ? [{ rule: "status-body", text: `${STATUS_DETAILS_HEADER} is not a google.rpc.Status` }] : [];
  const read = readDetails(details ?? []);
  return {
    name: read.reason,
    code,
    httpStatus: undefined,
    message,
    details: (details ?? []).map(fieldsOf),
    faults: [...faults, ...read.faults],
  };
}
