/** The configuration section for agents in chat channels. */

import { z } from "zod";
import { formatDuration } from "../../../core/model/duration.ts";
import { count, optional, text, wait } from "../../../core/yaml/value-types.ts";
import { NETWORKS } from "../networks/networks.ts";
import { DEFAULT_RATE, DEFAULT_TIMEOUT_MS } from "./entries.ts";

/** One key for each network; an entry has exactly one of them, which `checkChannels` verifies. */
const networkKeys: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  NETWORKS.map(({ name, settings, title }) => [
    name,
    settings.exactOptional().describe(`${title}. \`dragoman channels show ${name}\` prints how to set it up.`),
  ]),
);

const agent = text.describe("Name of the agent that takes part.");
const ALLOW_PEERS_ERROR = 'must be a list of ids, or "*" for everyone';
const everyone = z
  .string()
  .regex(/^\*$/, { error: ALLOW_PEERS_ERROR })
  .transform((): "*" => "*");
const allowPeers = z.union([everyone, z.array(text)], { error: ALLOW_PEERS_ERROR });
const allowBots = z.literal([false, "mentions", true], { error: 'must be false, "mentions" or true' });

const ownKeys = {
  agent,
  allowPeers: allowPeers
    .default([])
    .describe(
      'Who may give the agent work: ids of participants as the network has them, or `"*"` for everyone who can post there. Others may only ask for its card.',
    ),
  allowBots: allowBots
    .default(false)
    .describe(
      "Whether posts of other bots are read: none (`false`), those that address the agent (`mentions`), or all (`true`). To give it work, a bot has to be in `allowPeers` as well.",
    ),
  owner: optional(
    text,
    "Owner of the tasks; default: the network's key, a colon and the agent's name, where `auth` is configured.",
  ),
  rate: z
    .strictObject({
      messages: count.default(DEFAULT_RATE.messages).describe("Messages of one peer that are handled within `per`."),
      per: wait.prefault(formatDuration(DEFAULT_RATE.perMs)).describe("The time in which they are counted."),
    })
    .prefault({})
    .describe("How much one peer may send; more is not handled."),
  timeout: wait
    .prefault(formatDuration(DEFAULT_TIMEOUT_MS))
    .describe("How long a peer that is called over this channel may take; then the call fails."),
};

export const ENTRY_KEYS: readonly string[] = [...Object.keys(networkKeys), ...Object.keys(ownKeys)];

export const channels = z
  .array(z.strictObject({ ...networkKeys, ...ownKeys }))
  .default([])
  .describe("Chat channels that agents take part in. Each entry has exactly one of the networks as a key.");

/** The same as options of `serve`. */
export const channelOptions = z.array(
  z.strictObject({
    ...networkKeys,
    agent,
    allowPeers: allowPeers.optional(),
    allowBots: allowBots.optional(),
    owner: text.optional(),
    rate: z.strictObject({ messages: count, perMs: count }).optional(),
    timeoutMs: count.optional(),
  }),
);
