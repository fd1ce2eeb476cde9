import { type ChannelServeOptions, createChannelDialect } from "../../features/chat/server/channel-dialect.ts";
import { createXiaoyi, type XiaoyiServeOptions } from "../../features/xiaoyi/server/open-xiaoyi.ts";
import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Dialect, DialectTools } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";

/** Every served dialect. The first answers if the caller's dialect is unknown. */
export function createDialects(
  tools: DialectTools,
  options: XiaoyiServeOptions & ChannelServeOptions,
): readonly [Dialect, ...Dialect[]] {
  return [a2aV1, a2aV03, a2aV01, tasksRest, ...createXiaoyi(tools, options), createChannelDialect(tools, options)];
}
