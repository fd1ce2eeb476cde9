import type * as Grpc from "@grpc/grpc-js";
import { PeerError } from "../check.ts";
import { type Exchange, ExchangeLog } from "../exchange-log.ts";
import { type Fields, fieldsOf } from "../json.ts";
import type { Version } from "../requirements/index.ts";
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

const STATUS_DETAILS_HEADER = "grpc-status-details-bin";

/** The library is loaded when an interface needs it, not before. */
export async function createGrpcPeer(
  target: Target,
  options: PeerOptions,
  observer: Observer,
  codec: MessageCodec,
): Promise<GrpcPeer> {
  const grpc = await import("@grpc/grpc-js");
  const { version } = target;
  const log = new ExchangeLog(options.secrets);
  const translation: Translation = version === "1.0" ? TRANSLATION_V1 : TRANSLATION_V03_PROTO;
  const standing = defaultHeaders(version, options);
  const { address, credentials } = parseAddress(grpc, target.url, options.insecure);
  const client = new grpc.Client(address, credentials);
  /** Calls under way: they end with the run. */
  const calls = new Set<{ cancel(): void }>();
  options.signal.addEventListener("abort", () => {
    for (const call of calls) call.cancel();
  });

  function metadataOf({ as, headers = {} }: CallOptions = {}): Grpc.Metadata {
    if (options.signal.aborted) throw new PeerError("the run has ended");
    const metadata = new grpc.Metadata();
    for (const [name, value] of mergeHeaders(standing, ...callerHeaders(options, as), headers)) {
      metadata.set(name.toLowerCase(), value);
    }
    return metadata;
  }

  function begin(method: string, metadata: Grpc.Metadata, body: string): Exchange {
    const headers = Object.entries(metadata.getMap()).map(([name, value]) => [name, String(value)] as const);
    return log.recordRequest(`${target.url} ${RPC_SERVICES[version]}/${method}`, headers, body);
  }

  const pathOf = (method: string): string => `/${RPC_SERVICES[version]}/${method}`;
  const deadline = (): Date => new Date(Date.now() + options.requestTimeoutMs);

  function refused(error: Grpc.ServiceError, exchange: Exchange): CallFailure {
    log.recordResponse(exchange, `${error.code} ${grpc.status[error.code] ?? ""}`);
    log.appendBody(exchange, error.details);
    if (error.code === grpc.status.CANCELLED && options.signal.aborted) throw new PeerError("the run has ended");
    if (error.code === grpc.status.DEADLINE_EXCEEDED) throw new PeerError(timeoutMessage(options.requestTimeoutMs));
    if (error.code === grpc.status.UNAVAILABLE && error.metadata.get(STATUS_DETAILS_HEADER).length === 0)
      throw new PeerError(error.details);
    const read = readRpcError(error.code, error.details, error.metadata.get(STATUS_DETAILS_HEADER)[0]);
    log.appendBody(exchange, read.details.length === 0 ? "" : ` ${JSON.stringify(read.details)}`);
    observer.refusal(read);
    return { ok: false, error: read, contentType: "application/grpc" };
  }

  function unary(method: string, bytes: Uint8Array, body: string, callOptions?: CallOptions) {
    const metadata = metadataOf(callOptions);
    const exchange = begin(method, metadata, body);
    return new Promise<{ readonly bytes: Uint8Array; readonly headers: Fields; exchange: Exchange } | CallFailure>(
      (resolve, reject) => {
        let headers: Fields = {};
        const call = client.makeUnaryRequest(
          pathOf(method),
          toBuffer,
          (buffer) => buffer,
          bytes,
          metadata,
          { deadline: deadline() },
          (error, reply) => {
            if (error === null && reply !== undefined) {
              log.recordResponse(exchange, "0 OK");
              resolve({ bytes: reply, headers, exchange });
              return;
            }
            try {
              resolve(refused(error as Grpc.ServiceError, exchange));
            } catch (fault) {
              reject(fault);
            }
          },
        );
        calls.add(call);
        call.on("status", () => calls.delete(call));
        call.on("metadata", (received: Grpc.Metadata) => {
          headers = received.getMap();
        });
      },
    );
  }

  async function answer(
    operation: OperationName,
    method: string,
    reply: string,
    bytes: Uint8Array,
    body: string,
    callOptions?: CallOptions,
  ): Promise<CallResult> {
    const got = await unary(method, bytes, body, callOptions);
    if ("ok" in got) return got;
    const wire = decodeReply(codec, reply, got.bytes);
    log.appendBody(got.exchange, JSON.stringify(wire));
    observer.result(operation, wire);
    const headers = Object.fromEntries(Object.entries(got.headers).map(([name, value]) => [name, String(value)]));
    return {
      ok: true,
      wire,
      result: translation.decodeResult(operation, wire),
      headers,
      contentType: "application/grpc",
    };
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

    open(operation: StreamingName, params, callOptions): Promise<OpenStream | CallFailure> {
      const { method, reply, request } = methodOf(operation, version);
      const value = translation.encodeRequest(operation, withTenant(params, target));
      const metadata = metadataOf(callOptions);
      const exchange = begin(method, metadata, JSON.stringify(value));
      const call = client.makeServerStreamRequest(
        pathOf(method),
        toBuffer,
        (buffer: Uint8Array) => buffer,
        codec.encode(request, value),
        metadata,
      );
      calls.add(call);
      call.on("status", () => calls.delete(call));
      const frames = new FrameQueue<Frame>(options.requestTimeoutMs, () => call.cancel());
      return new Promise((resolve, reject) => {
        let begun = false;
        const timer = setTimeout(() => {
          call.cancel();
          reject(new PeerError(timeoutMessage(options.requestTimeoutMs)));
        }, options.requestTimeoutMs);
        const open = (): void => {
          begun = true;
          clearTimeout(timer);
          resolve({ ok: "stream", frames, contentType: "application/grpc" });
        };
        call.on("data", (bytes: Uint8Array) => {
          if (!begun) {
            log.recordResponse(exchange, "a stream");
            open();
          }
          try {
            const wire = decodeReply(codec, reply, bytes);
            log.appendBody(exchange, `${JSON.stringify(wire)}\n`);
            observer.frame(wire);
            frames.push({ event: translation.decodeEvent(wire), wire });
          } catch (fault) {
            frames.end(fault instanceof Error ? fault : new PeerError(String(fault)));
            call.cancel();
          }
        });
        call.on("end", () => {
          if (!begun) open();
          frames.end();
        });
        call.on("error", (error: Grpc.ServiceError) => {
          clearTimeout(timer);
          if (begun) {
            frames.end(new PeerError(`the stream broke: ${error.message}`));
            return;
          }
          begun = true;
          try {
            resolve(refused(error, exchange));
          } catch (fault) {
            reject(fault);
          }
        });
      });
    },

    unary: (method, bytes, callOptions) =>
      answer("GetTask", method, "Task", bytes, Buffer.from(bytes).toString("hex"), callOptions),
    close: () => client.close(),
  };
}

function methodOf(operation: OperationName, version: Version) {
  const row = RPC_METHODS[version][operation];
  if (row === undefined) throw new PeerError(`${operation} does not exist in ${version}`);
  return row;
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function decodeReply(codec: MessageCodec, message: string, bytes: Uint8Array): unknown {
  try {
    return message === "Empty" ? null : codec.decode(message, bytes);
  } catch {
    throw new PeerError(`the answer is not a ${message}`);
  }
}

/** Cards give `host:port`, some an URL. Only what says so, or has the port for it, is encrypted. */
function parseAddress(grpc: typeof Grpc, url: string, insecure: boolean) {
  const [, scheme = "", rest = url] = /^([a-z][a-z0-9+.-]*):\/\/([^/]+)/i.exec(url) ?? [];
  const plain = scheme === "http" || scheme === "grpc" || (scheme === "" && !/:443$/.test(rest));
  const options = insecure ? { rejectUnauthorized: false } : {};
  const credentials = plain ? grpc.credentials.createInsecure() : grpc.credentials.createSsl(null, null, null, options);
  return { address: rest, credentials };
}

function readRpcError(code: number, message: string, encoded: Buffer | string | undefined): WireError {
  const details = encoded === undefined ? [] : decodeStatusDetails(Buffer.from(encoded));
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
