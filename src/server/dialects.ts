import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Dialect } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";
import { DEFAULT_LANGUAGE } from "../dialects/xiaoyi/phone-texts.ts";
import { createXiaoyiHttp } from "../dialects/xiaoyi-http/index.ts";
import { createXiaoyiLink } from "../dialects/xiaoyi-link/index.ts";
import { NO_CLOCK, SILENT_LOG } from "../model/ports.ts";

/** Whoever is served over links is set up where they are dialled. */
const xiaoyiLink = createXiaoyiLink({
  agentId: "",
  artifactId: () => "",
  clock: NO_CLOCK,
  log: SILENT_LOG,
  mode: "phone",
  language: DEFAULT_LANGUAGE,
});

/** Those that need to be told something before they can serve, set up for one server. */
export interface ConfiguredDialects {
  readonly xiaoyiHttp: Dialect;
}

/** Every dialect that is served. The first answers where it cannot be told which one the caller speaks. */
export function createDialects({ xiaoyiHttp }: ConfiguredDialects): readonly [Dialect, ...Dialect[]] {
  return [a2aV1, a2aV03, a2aV01, tasksRest, xiaoyiHttp, xiaoyiLink];
}

/** As they are where nothing is set up. */
export const DIALECTS = createDialects({
  xiaoyiHttp: createXiaoyiHttp({ entriesFor: () => [], clock: NO_CLOCK, log: SILENT_LOG }),
});
