/** Sections that dialects contribute to a configuration. Each function has one line per section. */

import { z } from "zod";
import { checkPeerAgents } from "../../../features/chat/server/check-peers.ts";
import {
  type ChannelsConfig,
  channelsValues,
  checkChannels,
  secretsOfChannels,
  toChannelsConfig,
} from "../../../features/chat/server/config.ts";
import { channelOptions, channels } from "../../../features/chat/server/config-schema.ts";
import type { ChannelEntryOptions } from "../../../features/chat/server/entries.ts";
import {
  checkXiaoyi,
  secretsOfXiaoyi,
  toXiaoyiConfig,
  type XiaoyiConfig,
  xiaoyiValues,
} from "../../../features/xiaoyi/server/config.ts";
import { xiaoyi } from "../../../features/xiaoyi/server/config-schema.ts";
import type { XiaoyiOptions } from "../../../features/xiaoyi/server/open-xiaoyi.ts";
import { type Fields, fieldsOf } from "../../model/json.ts";
import type { Finding } from "../../yaml/problems.ts";
import type { ParsedConfig } from "./schema.ts";
import type { ShownValues } from "./shown-values.ts";

export { dialIn } from "../../../features/xiaoyi/server/config-schema.ts";
export { createDialInAgent, type DialInCredentials } from "../../../features/xiaoyi/server/dial-in-agent.ts";

export const sectionSchemas = { xiaoyi, channels };

export interface SectionConfigs {
  readonly xiaoyi: XiaoyiConfig;
  readonly channels: ChannelsConfig;
}

export function toSectionConfigs(parsed: Pick<ParsedConfig, keyof SectionConfigs>): SectionConfigs {
  return { xiaoyi: toXiaoyiConfig(parsed.xiaoyi), channels: toChannelsConfig(parsed.channels) };
}

/** The same sections as options of `serve`. */
export interface SectionOptions {
  /** How agents are connected to Huawei's assistant Xiaoyi. */
  readonly xiaoyi?: XiaoyiOptions;
  /** Chat channels that agents take part in. */
  readonly channels?: readonly ChannelEntryOptions[];
}

/** The contents of `xiaoyi` are validated by the section itself. */
export const sectionChecks = {
  xiaoyi: z.record(z.string(), z.unknown()).optional(),
  channels: channelOptions.optional(),
};

export function* sectionValues(config: SectionConfigs): ShownValues {
  yield* xiaoyiValues(config.xiaoyi);
  yield* channelsValues(config.channels);
}

export function checkSections(root: Fields, agents: Fields): readonly Finding[] {
  return [
    ...checkXiaoyi(fieldsOf(root.xiaoyi), agents),
    ...checkChannels(root.channels, agents),
    ...checkPeerAgents(root.channels, agents),
  ];
}

export function sectionSecrets({ channels = [], xiaoyi = {} }: SectionOptions): readonly string[] {
  return [...secretsOfXiaoyi(xiaoyi), ...secretsOfChannels(channels)];
}
