import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Dialect } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";

/** Every dialect that is served. The first answers where it cannot be told which one the caller speaks. */
export const DIALECTS: readonly [Dialect, ...Dialect[]] = [a2aV1, a2aV03, a2aV01, tasksRest];
