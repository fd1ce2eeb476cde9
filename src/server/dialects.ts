import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Dialect, DialectTools } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";
import { createXiaoyi, type XiaoyiServeOptions } from "./xiaoyi/open-xiaoyi.ts";

/** Every dialect that is served. The first answers where it cannot be told which one the caller uses. */
export function createDialects(tools: DialectTools, options: XiaoyiServeOptions): readonly [Dialect, ...Dialect[]] {
  return [a2aV1, a2aV03, a2aV01, tasksRest, ...createXiaoyi(tools, options)];
}
