/** What an agent on the link is made of. */

import type { Clock, Log } from "../../model/ports.ts";
import type { ServeContext } from "../contract.ts";
import type { Language } from "../xiaoyi/phone-texts.ts";
import type { FileIntake, OfflineNotifications, PersistentMap } from "../xiaoyi/ports.ts";
import type { RenderMode } from "../xiaoyi/render/renderer.ts";
import type { UploadFile } from "../xiaoyi/upload.ts";
import type { ReplyTimes } from "./reply.ts";

export interface LinkAgentOptions {
  readonly agentId: string;
  readonly context: Pick<ServeContext, "caller" | "ids" | "limits" | "report" | "service">;
  /** Counts a request of the caller; throws a ProtocolError if it makes too many. Absent: any number is accepted. */
  readonly admit?: () => unknown;
  readonly artifactId: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly mode: RenderMode;
  /** Of what the server itself says. */
  readonly language: Language;
  readonly times?: Partial<LinkTimes>;
  /** Absent: files are told by their names and links. */
  readonly upload?: UploadFile;
  /** Absent: users who left are told of nothing. */
  readonly notifications?: OfflineNotifications | undefined;
  /** Absent: files stay where the platform has them. */
  readonly intake?: FileIntake | undefined;
  /** Absent: that a conversation was cleared is forgotten when the process ends. */
  readonly cleared?: PersistentMap | undefined;
  /** Tasks with the conversation that waits for their answer. Absent: a crash leaves those without that had just ended. */
  readonly unanswered?: PersistentMap | undefined;
}

export interface LinkTimes extends ReplyTimes {
  readonly heartbeatMs: number;
}

export const DEFAULT_LINK_TIMES: LinkTimes = {
  heartbeatMs: 20_000,
  keepAliveMs: 20_000,
  finalAfterMs: 300,
  paceMs: 100,
  undeliveredMs: 30_000,
};
