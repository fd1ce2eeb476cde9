/** What `rpc-transport.ts` needs of a gRPC library. */
import type { RpcCall, RpcMetadata } from "../wire/rpc.ts";
import type { GrpcAddress } from "./grpc-address.ts";

export interface RpcCallOptions {
  readonly signal: AbortSignal;
  /** Of the whole call; of a stream, until the peer gives its first sign. */
  readonly timeoutMs?: number;
  /** A connection on which nothing comes for longer is probed, where the other side allows it that often. */
  readonly silenceMs: number;
}

export interface RpcAnswer {
  readonly metadata: RpcMetadata;
  readonly message: Uint8Array;
}

export interface RpcStream {
  /** As many at a time as have come. No more are read than are asked for. Fails as `RpcCarrier` says. */
  readonly messages: AsyncGenerator<readonly Uint8Array[], void, undefined>;
  /** Ends the iteration without an error. */
  cancel(): void;
}

/** Fails with `RpcStatusError` for what the peer says, and with `CarrierError` for the way there. */
export interface RpcCarrier {
  unary(address: GrpcAddress, call: RpcCall, options: RpcCallOptions): Promise<RpcAnswer>;
  stream(address: GrpcAddress, call: RpcCall, options: RpcCallOptions): RpcStream;
}
