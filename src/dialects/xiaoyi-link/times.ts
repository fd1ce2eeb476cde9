import type { ReplyTimes } from "./reply.ts";

export interface LinkTimes extends ReplyTimes {
  readonly heartbeatMs: number;
}

export const DEFAULT_LINK_TIMES: LinkTimes = {
  heartbeatMs: 20_000,
  keepAliveMs: 20_000,
  finalAfterMs: 300,
  paceMs: 100,
  absentMs: 30_000,
};
