import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Dialect, DialectTools } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";
import { loadedParts } from "../extension/installed.ts";
import type { ServeOptions } from "./options.ts";

/** Every served dialect. The first answers if the caller's dialect is unknown. */
export function createDialects(tools: DialectTools, options: ServeOptions): readonly [Dialect, ...Dialect[]] {
  const added = loadedParts("serving").flatMap(({ dialects }) => dialects?.(tools, options) ?? []);
  return [a2aV1, a2aV03, a2aV01, tasksRest, ...added];
}
