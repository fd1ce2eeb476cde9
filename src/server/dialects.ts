import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import type { Dialect } from "../dialects/contract.ts";

/** Every dialect that is served. The first answers where it cannot be told which one the caller speaks. */
export const DIALECTS: readonly [Dialect, ...Dialect[]] = [a2aV1];
