import { constants } from "node:http2";
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from "@grpc/grpc-js";
import { RPC_CODES } from "../../wire/rpc.ts";
import type { Arrivals, Arriving } from "./arrivals.ts";
import type { Connections } from "./connections.ts";
import type { Envelope } from "./envelope.ts";

type InboundListener = Parameters<ServerInterceptingCallInterface["start"]>[0];
type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

/** Messages that are sent together. */
export class Batch {
  readonly messages: readonly Uint8Array[];
  /** The call that took it, set when it did. */
  call: CarriedCall | undefined = undefined;

  constructor(messages: readonly Uint8Array[]) {
    this.messages = messages;
  }
}

export type Outgoing = Uint8Array | Batch;

/** What is used of the HTTP/2 stream below a call. */
interface CarryingStream {
  readonly writableEnded: boolean;
  close(code: number): void;
}

/**
 * A call between the library's surface and its HTTP/2 stream. The surface hands down one message at a time and waits for
 * each to leave; here a whole batch goes to the stream, which writes it at once.
 */
export class CarriedCall extends ServerInterceptingCall implements Arriving {
  readonly #next: ServerInterceptingCallInterface;
  /** Undefined where requests are streams, which may take any time to come. */
  readonly #arrivals: Arrivals | undefined;
  readonly #connections: Connections;

  constructor(next: ServerInterceptingCallInterface, arrivals: Arrivals | undefined, connections: Connections) {
    super(next);
    this.#next = next;
    this.#arrivals = arrivals;
    this.#connections = connections;
  }

  receive(message: Envelope): void {
    message.from = this.#connections.senderOf(this.getConnectionInfo());
  }

  override start(listener: InboundListener): void {
    const arrivals = this.#arrivals;
    arrivals?.add(this);
    this.#next.start(arrivals === undefined ? listener : new ArrivalListener(listener, this, arrivals));
  }

  override sendMetadata(metadata: Metadata): void {
    this.#next.sendMetadata(metadata);
  }

  override sendStatus(status: Status): void {
    this.#next.sendStatus(status);
  }

  override sendMessage(message: Outgoing, callback: () => void): void {
    if (message instanceof Batch) this.#sendBatch(message, callback);
    else this.#next.sendMessage(message, callback);
  }

  #sendBatch(batch: Batch, callback: () => void): void {
    batch.call = this;
    // The call has ended by itself, e.g. by its deadline. Writing now would turn its status into an error.
    if (carryingStream(this.#next)?.writableEnded === true) return;
    const { messages } = batch;
    const last = messages.length - 1;
    for (let index = 0; index < last; index++) this.#next.sendMessage(messages[index], nothing);
    this.#next.sendMessage(messages[last], callback);
  }

  /** Ends the call although its reader takes nothing. A status would wait behind what was not taken. */
  cutOff(): void {
    const stream = carryingStream(this.#next);
    if (stream !== undefined) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else this.#next.sendStatus({ code: RPC_CODES.RESOURCE_EXHAUSTED, details: "The stream was not read." });
  }

  giveUp(): void {
    this.#next.sendStatus({ code: RPC_CODES.DEADLINE_EXCEEDED, details: "The request did not arrive in time." });
    // The caller would go on sending, and what came so far would be kept.
    carryingStream(this.#next)?.close(constants.NGHTTP2_NO_ERROR);
  }
}

/** Notices when the request is there, or will never be, and where it came from. */
class ArrivalListener implements InboundListener {
  readonly #listener: InboundListener;
  readonly #call: CarriedCall;
  readonly #arrivals: Arrivals;

  constructor(listener: InboundListener, call: CarriedCall, arrivals: Arrivals) {
    this.#listener = listener;
    this.#call = call;
    this.#arrivals = arrivals;
  }

  onReceiveMetadata(metadata: Metadata): void {
    this.#listener.onReceiveMetadata(metadata);
  }

  onReceiveMessage(message: Envelope): void {
    this.#call.receive(message);
    this.#listener.onReceiveMessage(message);
  }

  onReceiveHalfClose(): void {
    this.#arrivals.delete(this.#call);
    this.#listener.onReceiveHalfClose();
  }

  onCancel(): void {
    this.#arrivals.delete(this.#call);
    this.#listener.onCancel();
  }
}

export function carryCalls(arrivals: Arrivals, connections: Connections): ServerInterceptor {
  return (method, call) => new CarriedCall(call, method.requestStream ? undefined : arrivals, connections);
}

/** The library has no door to it, so it is looked for; without it a call is merely ended less abruptly. */
function carryingStream(call: ServerInterceptingCallInterface): CarryingStream | undefined {
  const stream: unknown = Reflect.get(call, "stream");
  return isCarryingStream(stream) ? stream : undefined;
}

function isCarryingStream(value: unknown): value is CarryingStream {
  if (typeof value !== "object" || value === null || !("close" in value)) return false;
  return typeof value.close === "function";
}

function nothing(): void {}
