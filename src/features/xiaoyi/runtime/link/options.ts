/** Options of an agent on a link. */

import type { ServeContext } from "../../../../core/dialects/contract.ts";
import type { Delivery, ReplyTo } from "../../../../core/model/operation.ts";
import type { Clock, Log } from "../../../../core/model/ports.ts";
import type { RenderMode } from "../../codec/render/renderer.ts";
import type { UserServices } from "../ports.ts";

export interface LinkAgentOptions extends UserServices {
  readonly agentId: string;
  /** Names of the servers that are dialled, the main one first. */
  readonly servers: readonly [string, ...string[]];
  /** Answers that are owed: registered for this route with each message, until they are delivered. */
  readonly replies: {
    readonly route: string;
    /** Registers another in the place of this delivery. False: the task is gone. */
    put(delivery: Delivery, reply: ReplyTo): Promise<boolean>;
  };
  readonly context: Pick<ServeContext, "caller" | "ids" | "limits" | "report" | "service">;
  /** Counts a request of the caller; throws a ProtocolError if it makes too many. Absent: any number is accepted. */
  readonly admit?: () => unknown;
  readonly artifactId: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly mode: RenderMode;
  readonly times?: Partial<LinkTimes>;
}

export interface LinkTimes {
  readonly heartbeatMs: number;
  /** Interval of keep-alive frames for a silent task. */
  readonly keepAliveMs: number;
  /** Delay of the last frame after frames with content, which the platform delivers more slowly. */
  readonly finalAfterMs: number;
  /** Minimum interval between two frames of which the second replaces the first. */
  readonly paceMs: number;
  /** How long a complete answer may wait for a link before a notification is sent instead. */
  readonly undeliveredMs: number;
}

export const DEFAULT_LINK_TIMES: LinkTimes = {
  heartbeatMs: 20_000,
  keepAliveMs: 20_000,
  finalAfterMs: 300,
  paceMs: 100,
  undeliveredMs: 30_000,
};
