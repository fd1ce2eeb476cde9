import type { ExchangeLog } from "../exchange-log.ts";
import type { Fields } from "../json.ts";
import type { Binding, Version } from "../requirements.ts";
import type { FrameQueue } from "./event-stream.ts";
import type { FullResponse } from "./http-client.ts";

/** What every request of a version has. */

export const VERSION_HEADER = "A2A-Version";

/** In 0.3 no version is named, and extensions are asked for under another name. */
export function defaultHeaders(version: Version, { requiredExtensions }: PeerOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  if (version === "1.0") headers[VERSION_HEADER] = version;
  if (requiredExtensions.length > 0) headers[extensionsHeader(version)] = requiredExtensions.join(", ");
  return headers;
}

export function extensionsHeader(version: Version): string {
  return version === "1.0" ? "A2A-Extensions" : "X-A2A-Extensions";
}

export function withTenant(params: Fields, { tenant }: Target): Fields {
  return tenant === undefined || "tenant" in params ? params : { tenant, ...params };
}

export function withQuery(url: URL, query: readonly (readonly [string, string])[]): URL {
  if (query.length === 0) return url;
  const full = new URL(url);
  for (const [name, value] of query) full.searchParams.set(name, value);
  return full;
}

/**
 * How a version encodes what checks write in the form of 1.0. Requests may be wrong on purpose: what a translation does not
 * recognise it passes on as it is.
 */
export interface Translation {
  encodeRequest(operation: OperationName, params: Fields): Fields;
  decodeResult(operation: OperationName, wire: unknown): unknown;
  decodeEvent(wire: unknown): Fields;
}

export const TRANSLATION_V1: Translation = {
  encodeRequest: (_operation, params) => params,
  decodeResult: (_operation, wire) => wire,
  decodeEvent: (wire) => (typeof wire === "object" && wire !== null ? (wire as Fields) : {}),
};

export const OPERATION_NAMES = [
  "SendMessage",
  "SendStreamingMessage",
  "GetTask",
  "ListTasks",
  "CancelTask",
  "SubscribeToTask",
  "CreateTaskPushNotificationConfig",
  "GetTaskPushNotificationConfig",
  "ListTaskPushNotificationConfigs",
  "DeleteTaskPushNotificationConfig",
  "GetExtendedAgentCard",
] as const;

/** Operations have one name here, that of 1.0, whatever the interface calls them. */
export type OperationName = (typeof OPERATION_NAMES)[number];
export type StreamingName = "SendStreamingMessage" | "SubscribeToTask";

/** An interface of the agent, as its card declares it. */
export interface Target {
  readonly binding: Binding;
  readonly version: Version;
  readonly url: string;
  readonly tenant: string | undefined;
}

export interface CallOptions {
  /** Over those every request has; undefined takes one away. Metadata on gRPC. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** As another caller, or as one who does not say who it is. */
  readonly as?: "other" | "anonymous";
}

/** An error as the binding tells it. */
export interface WireError {
  /** The reason of its ErrorInfo, or the error its JSON-RPC code stands for. */
  readonly name: string | undefined;
  /** JSON-RPC code, HTTP status or gRPC status. */
  readonly code: number;
  readonly httpStatus: number | undefined;
  readonly message: string;
  readonly details: readonly unknown[];
  /** What is wrong with its form, by the rule it breaks. */
  readonly faults: readonly ErrorFault[];
}

export interface ErrorFault {
  readonly rule: "status-body" | "detail-type" | "envelope";
  readonly text: string;
}

export type CallResult = CallSuccess | CallFailure;

interface CallSuccess {
  readonly ok: true;
  /** In the form of 1.0, whatever the version of the interface. */
  readonly result: unknown;
  /** As it came. */
  readonly wire: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
}

export interface CallFailure {
  readonly ok: false;
  readonly error: WireError;
  readonly contentType: string;
}

/** An event of a stream, or the error that ended it. */
export interface Frame {
  readonly event: Fields;
  readonly wire: unknown;
  readonly error?: WireError;
}

export interface OpenStream {
  readonly ok: "stream";
  readonly frames: FrameQueue<Frame>;
  readonly contentType: string;
}

/** Sees every answer and event, so that all that is ever received is judged. */
export interface Observer {
  result(operation: OperationName, wire: unknown): void;
  /** `fault` is what is wrong with the frame around the event. */
  frame(wire: unknown, fault?: string): void;
  refusal(error: WireError): void;
  /** Something about the envelope around an answer; undefined when it is as it should be. */
  envelope(fault: string | undefined): void;
  contentType(kind: "whole" | "stream" | "error", contentType: string): void;
}

interface PeerBase {
  readonly target: Target;
  readonly log: ExchangeLog;
  /** Does the version know this operation at all? */
  supports(operation: OperationName): boolean;
  /** Params are in the form of 1.0, and may be wrong on purpose. */
  call(operation: OperationName, params: Fields, options?: CallOptions): Promise<CallResult>;
  open(operation: StreamingName, params: Fields, options?: CallOptions): Promise<OpenStream | CallFailure>;
  close(): void;
}

export interface JsonRpcPeer extends PeerBase {
  readonly binding: "JSONRPC";
  /** Sends any body to the interface's URL. */
  post(body: string | Uint8Array, options?: CallOptions): Promise<FullResponse>;
  methodOf(operation: OperationName): string;
}

export interface HttpPeer extends PeerBase {
  readonly binding: "HTTP+JSON";
  /** Sends any request to a path below the interface's URL. */
  request(method: string, path: string, body: string | undefined, options?: CallOptions): Promise<FullResponse>;
}

export interface GrpcPeer extends PeerBase {
  readonly binding: "GRPC";
  /** Sends any bytes to any method of the service. */
  unary(method: string, bytes: Uint8Array, options?: CallOptions): Promise<CallResult>;
}

export type Peer = JsonRpcPeer | HttpPeer | GrpcPeer;

/** As whom and how long: the same for all interfaces of a run. */
export interface PeerOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Credentials that belong into the URL's query. */
  readonly query: readonly (readonly [string, string])[];
  /** Headers of a second caller. */
  readonly otherHeaders: Readonly<Record<string, string>> | undefined;
  /** Names of headers that say who calls. */
  readonly credentialNames: readonly string[];
  readonly requiredExtensions: readonly string[];
  readonly requestTimeoutMs: number;
  readonly signal: AbortSignal;
  readonly insecure: boolean;
  readonly secrets: readonly string[];
}

/** The headers of one request: standing ones, the caller's own, those of the call. */
export function callerHeaders(
  options: PeerOptions,
  as: CallOptions["as"],
): readonly Readonly<Record<string, string | undefined>>[] {
  const none = Object.fromEntries(options.credentialNames.map((name) => [name, undefined]));
  if (as === "anonymous") return [options.headers, none];
  if (as === "other") return [options.headers, none, options.otherHeaders ?? {}];
  return [options.headers];
}
