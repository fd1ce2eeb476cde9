/** The configuration of chat channels: its rules, how it is displayed and which values are secret. */

import type { z } from "zod";
import type { ConfigSection } from "../../../core/extension/contract.ts";
import { formatDuration } from "../../../core/model/duration.ts";
import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import type { DragomanConfig } from "../../../core/server/config/config.ts";
import { checkAgentExists } from "../../../core/server/config/problems.ts";
import { type EffectiveScalar, membersOf, type ShownValues } from "../../../core/server/config/shown-values.ts";
import type { Finding, Path } from "../../../core/yaml/problems.ts";
import { NETWORKS } from "../networks/networks.ts";
import { checkPeerAgents } from "./check-peers.ts";
import { channelOptions, channels, ENTRY_KEYS } from "./config-schema.ts";
import { type ChannelEntryOptions, identityOf, networkOf } from "./entries.ts";

export type ChannelsConfig = ReturnType<typeof toChannelsConfig>;

/** Of a whole configuration. */
export const channelsOf = ({ sections }: Pick<DragomanConfig, "sections">): ChannelsConfig =>
  sections.channels as ChannelsConfig;

function toChannelsConfig(parsed: z.output<typeof channels>) {
  return parsed.map(({ rate, timeout, ...entry }) => ({
    ...entry,
    rate: { messages: rate.messages, perMs: rate.per },
    timeoutMs: timeout,
  }));
}

function checkChannels(section: unknown, agents: Fields): readonly Finding[] {
  const entries = listOf(section).map(fieldsOf);
  return [
    ...entries.flatMap((entry, index) => checkEntry(entry, agents, ["channels", index])),
    ...checkDuplicateAccounts(entries),
  ];
}

function checkEntry(entry: Fields, agents: Fields, path: Path): readonly Finding[] {
  const findings = [...checkAgentExists(entry.agent, agents, [...path, "agent"])];
  const given = NETWORKS.filter(({ name }) => entry[name] !== undefined);
  // The one that was meant may be among the unknown keys, which are reported already.
  const isUnknown = Object.keys(entry).some((key) => !ENTRY_KEYS.includes(key));
  if (given.length === 0 && !isUnknown) {
    findings.push({ path, message: `needs one of ${NETWORKS.map(({ name }) => name).join(", ")}` });
  }
  if (given.length > 1) {
    findings.push({ path, message: `has ${given.map(({ name }) => name).join(" and ")}; an entry is one of them` });
  }
  return findings;
}

/** Two connections of one account close each other, or both answer. */
function checkDuplicateAccounts(entries: readonly Fields[]): readonly Finding[] {
  const known = new Map<string, number>();
  return entries.flatMap((entry, index) => {
    const network = NETWORKS.find(({ name }) => isObject(entry[name]));
    const settings = network?.settings.safeParse(entry[network.name]);
    if (network === undefined || settings?.success !== true) return [];
    const account = `${network.name} ${identityOf(settings.data)}`;
    const first = known.get(account);
    known.set(account, first ?? index);
    const path = ["channels", index, network.name];
    return first === undefined ? [] : [{ path, message: `is the same account as channels[${first}]` }];
  });
}

function* channelsValues(entries: ChannelsConfig): ShownValues {
  for (const [index, entry] of entries.entries()) {
    const { agent, allowBots, allowPeers, owner, rate, timeoutMs } = entry;
    const { network, settings } = networkOf(entry);
    const path = `channels[${index}]`;
    yield* settingValues(`${path}.${network.name}`, settings, new Set(network.secrets(settings)));
    yield* membersOf(path, { agent, allowPeers, allowBots, owner, timeout: formatDuration(timeoutMs) });
    yield* membersOf(`${path}.rate`, { messages: rate.messages, per: formatDuration(rate.perMs) });
  }
}

const REDACTED = "***";

function* settingValues(path: string, value: unknown, secrets: ReadonlySet<string>): ShownValues {
  const show = (one: unknown) => (typeof one === "string" && secrets.has(one) ? REDACTED : (one as EffectiveScalar));
  if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) yield* settingValues(`${path}.${key}`, member, secrets);
  } else if (!Array.isArray(value)) yield [path, show(value)];
  else if (!value.some(isObject)) yield [path, value.map(show)];
  else for (const [index, item] of value.entries()) yield* settingValues(`${path}[${index}]`, item, secrets);
}

/** Values that are redacted in logs. */
function secretsOfChannels(entries: readonly ChannelEntryOptions[]): readonly string[] {
  return entries.flatMap((entry) => {
    const { network, settings } = networkOf(entry);
    return network.secrets(settings);
  });
}

export const channelsSection: ConfigSection<z.output<typeof channels>, ChannelsConfig> = {
  schema: channels,
  options: channelOptions,
  toConfig: toChannelsConfig,
  check: (section, agents) => [...checkChannels(section, agents), ...checkPeerAgents(section, agents)],
  shown: channelsValues,
  secrets: secretsOfChannels,
};
