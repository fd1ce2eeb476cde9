import type { RpcServing } from "../../dialects/contract.ts";
import type { Log, Meter } from "../../model/ports.ts";
import type { IncomingByteBudget, UnsentByteBudget } from "../access/byte-budgets.ts";
import type { ConnectionLimits } from "../access/connections.ts";
import type { Gate } from "../access/gate.ts";
import type { TlsFiles } from "../access/tls.ts";
import type { KeepAlive } from "./connection.ts";

/** A service, and the dialect it belongs to. */
export interface RpcBinding {
  readonly dialect: string;
  readonly serving: RpcServing;
}

export interface GrpcOptions {
  readonly services: readonly RpcBinding[];
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly gate: Pick<Gate, "admit" | "checkAddress" | "contextFor" | "screen">;
  /** Shared with the other carriers. */
  readonly arriving?: IncomingByteBudget;
  /** Likewise, of answers that wait to be read. */
  readonly unsent?: UnsentByteBudget;
  /** Bytes of a request message; more is answered with RESOURCE_EXHAUSTED. Default: 16 MiB. */
  readonly maxMessageBytes?: number;
  /** Calls at a time on one connection. Default: 10,000. */
  readonly maxConcurrentCalls?: number;
  /** Bounds on connections and on how long requests may take to come in full. Default: those of HTTP. */
  readonly connections?: Partial<ConnectionLimits>;
  /** Silent connections are asked whether they are still there, and closed if they do not answer in time. */
  readonly keepAlive?: KeepAlive;
  /** A reader that takes nothing for this long is cut off; that of a stream can resume from its cursor. */
  readonly stalledReaderMs: number;
  /** Milliseconds, by which calls a second are counted; default: the system's clock. */
  readonly now?: () => number;
  /** Absent: plain text. */
  readonly tls?: TlsFiles;
  readonly log: Log;
  readonly meter: Meter;
}

export interface GrpcEndpoint {
  readonly port: number;
  /** From now on the health service says NOT_SERVING. Calls are answered all the same. */
  drain(): void;
  /** Takes no more calls and waits for those under way; what is open after the time of grace is cut off. */
  close(graceMs: number): Promise<void>;
}

/** Opens the endpoint that all agents share. Loaded only here, so that servers without gRPC do not pay for it. */
export async function createGrpcServer(options: GrpcOptions): Promise<GrpcEndpoint> {
  const { openEndpoint } = await import("./endpoint.ts");
  return openEndpoint(options);
}
