import type { RpcServing } from "../../dialects/contract.ts";
import type { IncomingByteBudget, UnreadLimits, UnsentByteBudget } from "../access/byte-budgets.ts";
import type { ConnectionLimits, ConnectionRules } from "../access/connections.ts";
import type { Gate } from "../access/gate.ts";
import type { TlsFiles } from "../access/tls.ts";
import type { KeepAlive } from "./connection.ts";

/** A service, and the dialect it belongs to. */
export interface RpcBinding {
  readonly dialect: string;
  readonly serving: RpcServing;
}

export interface GrpcOptions extends Omit<UnreadLimits, "unsent">, ConnectionRules {
  readonly services: readonly RpcBinding[];
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
  readonly gate: Pick<Gate, "admit" | "checkAddress" | "contextFor">;
  /** Shared with the other carriers. */
  readonly arriving?: IncomingByteBudget;
  /** Shared with the other carriers; for unread responses. */
  readonly unsent?: UnsentByteBudget;
  /** Maximum size of a request message in bytes; more is answered with RESOURCE_EXHAUSTED. Default: 16 MiB. */
  readonly maxMessageBytes?: number;
  /** Maximum number of concurrent calls per connection whose caller is known. Default: 10,000. */
  readonly maxConcurrentCalls?: number;
  /** Bounds on connections and on the time to receive a request. Default: those of HTTP. */
  readonly connections?: Partial<ConnectionLimits>;
  /** Idle connections are pinged, and closed if they do not answer in time. */
  readonly keepAlive?: KeepAlive;
  /** Clock in milliseconds for counting calls per second; default: the system's clock. */
  readonly now?: () => number;
  /** Absent: plain text. */
  readonly tls?: TlsFiles;
}

export interface GrpcEndpoint {
  readonly port: number;
  /** Makes the health service report NOT_SERVING. Calls are still answered. */
  drain(): void;
  /** Accepts no more calls and waits for running ones; those still open after the grace period are aborted. */
  close(graceMs: number): Promise<void>;
}

/**
 * Opens the endpoint that all agents share. Loads its modules on demand, so that servers without gRPC do not pay for
 * them.
 */
export async function createGrpcServer(options: GrpcOptions): Promise<GrpcEndpoint> {
  const { openEndpoint } = await import("./endpoint.ts");
  return openEndpoint(options);
}
