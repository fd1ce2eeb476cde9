/**
 * A remote procedure call as gRPC knows it: one message of bytes in; one message, a stream of them, or a status out.
 * Independent of what the bytes mean and of the library that carries them.
 */
import type { PeerCertificate } from "./tls.ts";

export interface RpcRequest {
  /** Full name, e.g. `package.v1.Service`. */
  readonly service: string;
  readonly method: string;
  /** Names are lower-case; binary entries are left out. */
  readonly metadata: Readonly<Record<string, string | undefined>>;
  readonly message: Uint8Array;
  readonly remoteAddress: string | undefined;
  /** Where the caller has shown one. */
  readonly certificate?: PeerCertificate | undefined;
}

export type RpcReply = RpcMessageReply | RpcStreamReply | RpcFailure;

export type RpcMetadata = Readonly<Record<string, string>>;

export interface RpcMessageReply {
  readonly kind: "message";
  readonly metadata?: RpcMetadata | undefined;
  readonly message: Uint8Array;
}

export interface RpcStreamReply {
  readonly kind: "stream";
  readonly metadata?: RpcMetadata | undefined;
  /**
   * Batches of messages. Throws `RpcStatusError` when the call fails after it began. The carrier calls `return` when the
   * caller goes away, also while a `next` is pending, and asks for more only when the caller can take it.
   */
  readonly messages: AsyncIterable<readonly Uint8Array[]>;
}

export interface RpcFailure {
  readonly kind: "failure";
  readonly status: RpcStatus;
}

export interface RpcStatus {
  readonly code: number;
  readonly message: string;
  /** A `google.rpc.Status`, for `grpc-status-details-bin`. */
  readonly details?: Uint8Array;
  readonly metadata?: RpcMetadata;
}

/** A status as something to throw. */
export class RpcStatusError extends Error {
  override readonly name = "RpcStatusError";
  readonly status: RpcStatus;

  constructor(status: RpcStatus) {
    super(status.message);
    this.status = status;
  }
}

export const RPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type RpcCodeName = keyof typeof RPC_CODES;

/** What to call, without where: the same call can go to any peer. */
export interface RpcCall {
  readonly service: string;
  readonly method: string;
  readonly metadata: RpcMetadata;
  readonly message: Uint8Array;
}
