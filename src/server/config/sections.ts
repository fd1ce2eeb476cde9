/** Sections that dialects contribute to a configuration. Each function has one line per section. */

import { z } from "zod";
import { type Fields, fieldsOf } from "../../model/json.ts";
import type { Finding } from "../../yaml/problems.ts";
import { checkXiaoyi, secretsOfXiaoyi, toXiaoyiConfig, type XiaoyiConfig, xiaoyiValues } from "../xiaoyi/config.ts";
import { xiaoyi } from "../xiaoyi/config-schema.ts";
import type { XiaoyiOptions } from "../xiaoyi/open-xiaoyi.ts";
import type { ParsedConfig } from "./schema.ts";
import type { ShownValues } from "./shown-values.ts";

export { dialIn } from "../xiaoyi/config-schema.ts";
export { createDialInAgent, type DialInCredentials } from "../xiaoyi/dial-in-agent.ts";

export const sectionSchemas = { xiaoyi };

export interface SectionConfigs {
  readonly xiaoyi: XiaoyiConfig;
}

export function toSectionConfigs(parsed: Pick<ParsedConfig, keyof SectionConfigs>): SectionConfigs {
  return { xiaoyi: toXiaoyiConfig(parsed.xiaoyi) };
}

/** The same sections as options of `serve`. */
export interface SectionOptions {
  /** How agents are connected to Huawei's assistant Xiaoyi. */
  readonly xiaoyi?: XiaoyiOptions;
}

/** Contents are validated by the section itself. */
export const sectionChecks = { xiaoyi: z.record(z.string(), z.unknown()).optional() };

export function* sectionValues(config: SectionConfigs): ShownValues {
  yield* xiaoyiValues(config.xiaoyi);
}

export function checkSections(root: Fields, agents: Fields): readonly Finding[] {
  return checkXiaoyi(fieldsOf(root.xiaoyi), agents);
}

export function sectionSecrets({ xiaoyi = {} }: SectionOptions): readonly string[] {
  return secretsOfXiaoyi(xiaoyi);
}
