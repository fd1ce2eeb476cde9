import type { Observer, Peer, PeerOptions, Target } from "./peer.ts";
import { createGrpcPeer, type MessageCodec } from "./peer-grpc.ts";
import { createHttpPeer } from "./peer-http.ts";
import { createJsonRpcPeer } from "./peer-json-rpc.ts";

/** Undefined for what is not supported: gRPC without the bytes of its messages. */
export async function createPeer(
  target: Target,
  options: PeerOptions,
  observer: Observer,
  codec: MessageCodec | undefined,
): Promise<Peer | undefined> {
  switch (target.binding) {
    case "JSONRPC":
      return createJsonRpcPeer(target, options, observer);
    case "HTTP+JSON":
      return createHttpPeer(target, options, observer);
    case "GRPC":
      return codec === undefined ? undefined : createGrpcPeer(target, options, observer, codec);
  }
}
