import { createGrpcCarrier } from "../../../core/client/transport/grpc-carrier.ts";
import { type GrpcAddress, parseGrpcAddress } from "../../../core/client/transport/grpc-channels.ts";
import type { Fields } from "../../../core/model/json.ts";
import { RPC_CODES, RpcStatusError } from "../../../core/wire/rpc.ts";
import { PeerError } from "../check.ts";
import type { Exchange } from "../exchange-log.ts";
import type { Observations } from "../observations.ts";
import type { Version } from "../requirements.ts";
import { decodeStatusDetails, readDetails } from "./errors.ts";
import { FrameQueue, toPeerError } from "./frame-queue.ts";
import {
  type CallFailure,
  type CallOptions,
  type CallResult,
  type GrpcPeer,
  type OperationName,
  type PeerOptions,
  requestHeaders,
  type Target,
  type WireError,
  withTenant,
} from "./peer.ts";
import { translationFor } from "./translate.ts";

const RPC_SERVICES = {
  "1.0": "lf.a2a.v1.A2AService",
  "0.3": "a2a.v1.A2AService",
} as const satisfies Record<Version, string>;

interface RpcMethod {
  readonly method: string;
  readonly reply: string;
  readonly request: string;
}

const rpcMethod = (method: string, reply: string, request = `${method}Request`) => ({ method, reply, request });

const PUSH_CONFIG = "TaskPushNotificationConfig";

const COMMON_METHODS = {
  SendMessage: rpcMethod("SendMessage", "SendMessageResponse"),
  SendStreamingMessage: rpcMethod("SendStreamingMessage", "StreamResponse", "SendMessageRequest"),
  GetTask: rpcMethod("GetTask", "Task"),
  CancelTask: rpcMethod("CancelTask", "Task"),
  GetTaskPushNotificationConfig: rpcMethod("GetTaskPushNotificationConfig", PUSH_CONFIG),
  DeleteTaskPushNotificationConfig: rpcMethod("DeleteTaskPushNotificationConfig", "Empty"),
};

const RPC_METHODS: Readonly<Record<Version, Readonly<Partial<Record<OperationName, RpcMethod>>>>> = {
  "1.0": {
    ...COMMON_METHODS,
    ListTasks: rpcMethod("ListTasks", "ListTasksResponse"),
    SubscribeToTask: rpcMethod("SubscribeToTask", "StreamResponse"),
    CreateTaskPushNotificationConfig: rpcMethod("CreateTaskPushNotificationConfig", PUSH_CONFIG, PUSH_CONFIG),
    ListTaskPushNotificationConfigs: rpcMethod(
      "ListTaskPushNotificationConfigs",
      "ListTaskPushNotificationConfigsResponse",
    ),
    GetExtendedAgentCard: rpcMethod("GetExtendedAgentCard", "AgentCard"),
  },
  "0.3": {
    ...COMMON_METHODS,
    SubscribeToTask: rpcMethod("TaskSubscription", "StreamResponse"),
    CreateTaskPushNotificationConfig: rpcMethod("CreateTaskPushNotificationConfig", PUSH_CONFIG),
    ListTaskPushNotificationConfigs: rpcMethod(
      "ListTaskPushNotificationConfig",
      "ListTaskPushNotificationConfigResponse",
    ),
    GetExtendedAgentCard: rpcMethod("GetAgentCard", "AgentCard"),
  },
};

/** The bytes of a version's messages, by their names without the package; values are in the JSON form. */
export interface MessageCodec {
  encode(message: string, value: unknown): Uint8Array;
  decode(message: string, bytes: Uint8Array): unknown;
}

/** The client's carrier loads the library when it is first called; its connections close by themselves. */
export function createGrpcPeer(
  target: Target,
  options: PeerOptions,
  observations: Observations,
  codec: MessageCodec,
): GrpcPeer {
  const { version } = target;
  const { limits } = options;
  const { log } = observations;
  const translation = translationFor(version, "GRPC");
  const address = parseAddress(target.url, options.cardUrl);
  const carrier = createGrpcCarrier({ insecure: options.insecure, tls: options.grpcTls?.(address) });
  const rpcLimits = { ...limits, silenceMs: limits.timeoutMs };

  /** The call, and where it is logged. */
  function begin(method: string, message: Uint8Array, body: string, callOptions?: CallOptions) {
    const headers = Object.entries(requestHeaders(version, options, {}, callOptions));
    const metadata = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
    const service = RPC_SERVICES[version];
    const exchange = log.recordRequest(`${target.url} ${service}/${method}`, metadata, body);
    return { call: { service, method, metadata, message }, exchange };
  }

  function encode(operation: OperationName, params: Fields) {
    const row = RPC_METHODS[version][operation];
    if (row === undefined) throw new PeerError(`${operation} does not exist in ${version}`);
    const value = translation.encodeRequest(operation, withTenant(params, target));
    return { ...row, bytes: codec.encode(row.request, value), body: JSON.stringify(value) };
  }

  function decode(message: string, bytes: Uint8Array, exchange: Exchange): unknown {
    try {
      const wire = message === "Empty" ? null : codec.decode(message, bytes);
      log.appendBody(exchange, `${JSON.stringify(wire)}\n`);
      return wire;
    } catch {
      throw new PeerError(`the answer is not a ${message}`);
    }
  }

  /** Throws if the server did not answer. */
  function readRefusal(error: unknown, exchange: Exchange): CallFailure {
    if (!(error instanceof RpcStatusError)) {
      const failure = toPeerError(error, limits);
      log.recordResponse(exchange, failure.message);
      throw failure;
    }
    const { code, details, message } = error.status;
    log.recordResponse(exchange, `${code} ${nameOfStatus(code)}`);
    log.appendBody(exchange, message);
    if (code === RPC_CODES.UNAVAILABLE && details === undefined) throw new PeerError(message);
    const read = readRpcError(code, message, details);
    log.appendBody(exchange, read.details.length === 0 ? "" : ` ${JSON.stringify(read.details)}`);
    observations.recordRefusal(read);
    return { ok: false, error: read };
  }

  async function exchangeOnce(
    operation: OperationName,
    { body, bytes, method, reply }: Omit<ReturnType<typeof encode>, "request">,
    callOptions?: CallOptions,
  ): Promise<CallResult> {
    const { call, exchange } = begin(method, bytes, body, callOptions);
    const answer = await carrier.unary(address, call, rpcLimits).catch((error) => readRefusal(error, exchange));
    if ("ok" in answer) return answer;
    log.recordResponse(exchange, "0 OK");
    const wire = decode(reply, answer.message, exchange);
    observations.recordResult(operation, wire);
    const headers = new Map(Object.entries(answer.metadata));
    return { ok: true, wire, result: translation.decodeResult(operation, wire), headers };
  }

  return {
    binding: "GRPC",
    target,
    log,
    supports: (operation) => RPC_METHODS[version][operation] !== undefined,
    call: async (operation, params, callOptions) => exchangeOnce(operation, encode(operation, params), callOptions),

    async open(operation, params, callOptions) {
      const { body, bytes, method, reply } = encode(operation, params);
      const { call, exchange } = begin(method, bytes, body, callOptions);
      const stream = carrier.stream(address, call, rpcLimits);
      const first = await stream.messages.next().catch((error) => readRefusal(error, exchange));
      if ("ok" in first) return first;
      log.recordResponse(exchange, "a stream");
      async function* readFrames(start: IteratorResult<readonly Uint8Array[], void>) {
        for (let step = start; step.done !== true; step = await stream.messages.next()) {
          for (const message of step.value) {
            const wire = decode(reply, message, exchange);
            observations.recordEvent(wire);
            yield { event: translation.decodeEvent(wire), wire };
          }
        }
      }
      return { ok: "stream", frames: new FrameQueue(readFrames(first), limits, () => stream.cancel()) };
    },

    unary: (method, bytes) =>
      exchangeOnce("GetTask", { method, reply: "Task", bytes, body: Buffer.from(bytes).toString("hex") }),
  };
}

function nameOfStatus(code: number): string {
  return Object.entries(RPC_CODES).find(([, value]) => value === code)?.[0] ?? "";
}

/** Cards give `host:port`, some a URL. Without a scheme it is encrypted as the card was, and at the port of TLS always. */
function parseAddress(url: string, cardUrl: string): GrpcAddress {
  const address = parseGrpcAddress(url, { tls: /:443$/.test(url) || /^https:/i.test(cardUrl) });
  if (address === undefined) throw new PeerError(`${url} is not the address of a gRPC endpoint`);
  return address;
}

function readRpcError(code: number, message: string, encoded: Uint8Array | undefined): WireError {
  const details = encoded === undefined ? [] : decodeStatusDetails(encoded);
  const { reason, ...read } = readDetails(details, "details");
  const fault = details === undefined ? "grpc-status-details-bin is not a google.rpc.Status" : undefined;
  return { name: reason, code, message, fault, ...read };
}
