/** The gRPC health service, `grpc.health.v1.Health`. */

import { compileProtobuf } from "../../../dialects/shared/proto/binary-codec.ts";
import type { ProtoTables } from "../../../dialects/shared/proto/json-codec.ts";
import { RPC_CODES, type RpcFailure, type RpcReply, type RpcRequest, RpcStatusError } from "../../../wire/rpc.ts";
import type { RpcService } from "../method-handler.ts";

export const HEALTH_SERVICE = "grpc.health.v1.Health";

export const HEALTH_METHODS = { Check: { streams: false }, Watch: { streams: true } } as const;

export const HEALTH_TABLES = {
  messages: {
    HealthCheckRequest: [["service", "string", "implicit", 1]],
    HealthCheckResponse: [["status", "ServingStatus", "implicit", 1]],
  },
  enums: { ServingStatus: ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] },
} as const satisfies ProtoTables;

type ServingStatus = (typeof HEALTH_TABLES.enums.ServingStatus)[number];

const codec = compileProtobuf<keyof typeof HEALTH_TABLES.messages>(HEALTH_TABLES);

export class Health implements RpcService {
  readonly #services: ReadonlySet<string>;
  readonly #watches = new Set<Watch>();
  #draining = false;
  #closed = false;

  /** The empty name denotes the server as a whole. */
  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  async answer(request: RpcRequest): Promise<RpcReply> {
    let service: string;
    try {
      service = String(codec.decode("HealthCheckRequest", request.message).service ?? "");
    } catch {
      return toFailureReply(RPC_CODES.INVALID_ARGUMENT, "The bytes are not a HealthCheckRequest.");
    }
    if (request.method === "Watch") return { kind: "stream", messages: this.#watch(service) };
    if (!this.#services.has(service))
      return toFailureReply(RPC_CODES.NOT_FOUND, `There is no service "${service}" here.`);
    return { kind: "message", message: encodeStatus(this.#statusOf(service)) };
  }

  toFailure(): RpcFailure {
    return { kind: "failure", status: { code: RPC_CODES.INTERNAL, message: "The server failed to answer." } };
  }

  /** Notifies watchers that this server is shutting down. */
  drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    for (const watch of this.#watches) watch.notify(this.#statusOf(watch.service));
  }

  /** Ends the watches, which would keep their connections open forever. */
  close(): void {
    this.drain();
    this.#closed = true;
    for (const watch of this.#watches) watch.end();
  }

  #watch(service: string): Watch {
    const watch = new Watch(service, this.#statusOf(service), () => this.#watches.delete(watch));
    this.#watches.add(watch);
    if (this.#closed) watch.end();
    return watch;
  }

  #statusOf(service: string): ServingStatus {
    if (!this.#services.has(service)) return "SERVICE_UNKNOWN";
    return this.#draining ? "NOT_SERVING" : "SERVING";
  }
}

type Step = IteratorResult<readonly Uint8Array[], undefined>;

const DONE: Step = { done: true, value: undefined };

/** The status of one service, now and on every change. A slow reader receives only the latest change. */
class Watch implements AsyncIterableIterator<readonly Uint8Array[], undefined> {
  readonly service: string;
  readonly #onClosed: () => void;
  #sent: ServingStatus | undefined;
  #pending: ServingStatus | undefined;
  #ended = false;
  #waiting: { readonly resolve: (step: Step) => void; readonly reject: (error: Error) => void } | undefined;

  constructor(service: string, status: ServingStatus, onClosed: () => void) {
    this.service = service;
    this.#pending = status;
    this.#onClosed = onClosed;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  notify(status: ServingStatus): void {
    if (status === this.#sent) return;
    this.#pending = status;
    this.#settle();
  }

  end(): void {
    this.#ended = true;
    this.#settle();
  }

  next(): Promise<Step> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#settle();
    });
  }

  return(): Promise<Step> {
    this.#onClosed();
    this.#waiting?.resolve(DONE);
    this.#waiting = undefined;
    return Promise.resolve(DONE);
  }

  #settle(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    if (this.#pending !== undefined) {
      this.#sent = this.#pending;
      this.#pending = undefined;
      this.#waiting = undefined;
      waiting.resolve({ done: false, value: [encodeStatus(this.#sent)] });
    } else if (this.#ended) {
      this.#onClosed();
      this.#waiting = undefined;
      waiting.reject(new RpcStatusError({ code: RPC_CODES.UNAVAILABLE, message: "The server is closing." }));
    }
  }
}

function encodeStatus(status: ServingStatus): Uint8Array {
  return codec.encode("HealthCheckResponse", { status });
}

function toFailureReply(code: number, message: string): RpcReply {
  return { kind: "failure", status: { code, message } };
}
