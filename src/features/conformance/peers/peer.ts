import type { GrpcAddress, GrpcTlsOptions } from "../../../core/client/transport/grpc-channels.ts";
import type { Fields } from "../../../core/model/json.ts";
import type { ExchangeLog } from "../exchange-log.ts";
import type { Binding, Version } from "../requirements.ts";
import type { FrameQueue } from "./frame-queue.ts";
import type { FullResponse } from "./http-client.ts";

export const VERSION_HEADER = "A2A-Version";

export function extensionsHeader(version: Version): string {
  return version === "1.0" ? "A2A-Extensions" : "X-A2A-Extensions";
}

/** Those of every request of the version, then `own`, the caller's, and the call's; 0.3 has no version header. */
export function requestHeaders(
  version: Version,
  options: PeerOptions,
  own: Readonly<Record<string, string>>,
  { as, headers = {} }: CallOptions = {},
): Record<string, string> {
  const { credentialNames, otherHeaders = {}, requiredExtensions } = options;
  const withoutCredentials = Object.fromEntries(credentialNames.map((name) => [name, undefined]));
  return mergeHeaders(
    version === "1.0" ? { [VERSION_HEADER]: version } : {},
    requiredExtensions.length === 0 ? {} : { [extensionsHeader(version)]: requiredExtensions.join(", ") },
    own,
    options.headers,
    as === undefined ? {} : withoutCredentials,
    as === "other" ? otherHeaders : {},
    headers,
  );
}

/** Later headers replace earlier ones, whatever the case of their names; an undefined value removes a header. */
export function mergeHeaders(
  ...blocks: readonly Readonly<Record<string, string | undefined>>[]
): Record<string, string> {
  const merged = new Map<string, readonly [string, string | undefined]>();
  for (const block of blocks) {
    for (const [name, value] of Object.entries(block)) merged.set(name.toLowerCase(), [name, value]);
  }
  return Object.fromEntries(
    [...merged.values()].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}

export function withTenant(params: Fields, { tenant }: Target): Fields {
  return tenant === undefined || "tenant" in params ? params : { tenant, ...params };
}

export function withQuery(url: URL, query: readonly (readonly [string, string])[]): URL {
  const full = new URL(url);
  for (const [name, value] of query) full.searchParams.set(name, value);
  return full;
}

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

/** Operations are named as in 1.0, in every version. */
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
  /** Added to those of every request; undefined removes one. Metadata on gRPC. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Sent as the second caller, or without credentials. */
  readonly as?: "other" | "anonymous";
}

/** An error as the binding encodes it. */
export interface WireError {
  /** The reason of its ErrorInfo, or the error its JSON-RPC code stands for. */
  readonly name: string | undefined;
  /** JSON-RPC code, HTTP status or gRPC status. */
  readonly code: number;
  readonly httpStatus?: number;
  readonly message: string;
  readonly details: readonly unknown[];
  /** What is wrong with the error itself, and with its details. */
  readonly fault: string | undefined;
  readonly detailFault: string | undefined;
}

export type CallResult = CallSuccess | CallFailure;

interface CallSuccess {
  readonly ok: true;
  /** In the form of 1.0, in every version of the interface. */
  readonly result: unknown;
  /** As received. */
  readonly wire: unknown;
  readonly headers: { get(name: string): string | null | undefined };
}

export interface CallFailure {
  readonly ok: false;
  readonly error: WireError;
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
}

interface PeerBase {
  readonly target: Target;
  readonly log: ExchangeLog;
  /** Whether the version has this operation. */
  supports(operation: OperationName): boolean;
  /** Params are in the form of 1.0, and may be invalid on purpose. */
  call(operation: OperationName, params: Fields, options?: CallOptions): Promise<CallResult>;
  open(operation: StreamingName, params: Fields, options?: CallOptions): Promise<OpenStream | CallFailure>;
}

export interface JsonRpcPeer extends PeerBase {
  readonly binding: "JSONRPC";
  /** Sends any body to the interface's URL. */
  post(body: string): Promise<FullResponse>;
  methodOf(operation: OperationName): string;
}

export interface HttpPeer extends PeerBase {
  readonly binding: "HTTP+JSON";
  /** Sends any request to a path below the interface's URL. */
  request(method: string, path: string, body: string | undefined): Promise<FullResponse>;
}

export interface GrpcPeer extends PeerBase {
  readonly binding: "GRPC";
  /** Sends any bytes to any method of the service. */
  unary(method: string, bytes: Uint8Array): Promise<CallResult>;
}

export type Peer = JsonRpcPeer | HttpPeer | GrpcPeer;

export interface CallLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The same for all interfaces of a run, except for the extensions. */
export interface PeerOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Credentials that belong into the URL's query. */
  readonly query: readonly (readonly [string, string])[];
  /** Headers of a second caller. */
  readonly otherHeaders: Readonly<Record<string, string>> | undefined;
  /** Names of headers that identify the caller. */
  readonly credentialNames: readonly string[];
  readonly requiredExtensions: readonly string[];
  readonly limits: CallLimits;
  readonly insecure: boolean;
  /** URL of the card. */
  readonly cardUrl: string;
  /** With the caller's TLS settings. */
  readonly fetch: typeof globalThis.fetch;
  readonly grpcTls: ((address: GrpcAddress) => GrpcTlsOptions["tls"]) | undefined;
}
