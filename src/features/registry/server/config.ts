/** The section `registry` of a configuration. */

import { z } from "zod";
import { hasUserInfo } from "../../../core/auth/verify/jwt.ts";
import { SIGNATURE_POLICIES } from "../../../core/client/options.ts";
import type { ConfigSection } from "../../../core/extension/contract.ts";
import { formatDuration } from "../../../core/model/duration.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import { credentials, secretsOfCredentials } from "../../../core/server/config/credentials.ts";
import { membersOf, type ShownValues } from "../../../core/server/config/shown-values.ts";
import { count, optional, text, wait } from "../../../core/yaml/value-types.ts";
import { VISIBILITIES } from "../entry.ts";
import { DEFAULT_REGISTRY_LIMITS } from "../registry.ts";
import type { RegistryServeOptions } from "./open-registry.ts";

const BASE_ERROR = "must be an http or https address without login, query or fragment";
const base = z
  .url({ protocol: /^https?$/, error: BASE_ERROR })
  .refine((url) => !hasUserInfo(url) && !/[?#]/.test(url), { error: BASE_ERROR })
  .transform((url) => url.replace(/\/+$/, ""));

const ORIGIN_ERROR = "must be an https origin such as https://keys.example.com";
const origin = z
  .url({ protocol: /^https$/, error: ORIGIN_ERROR })
  .refine((url) => canParseUrl(url) && new URL(url).origin === url.replace(/\/$/, "").toLowerCase(), {
    error: ORIGIN_ERROR,
  });

export const agentVisibility = optional(
  z.enum(VISIBILITIES),
  "Whether the registry and the catalog list the agent: `public` (default) or `private`, which only hides it.",
);

const target = z.union([base, z.strictObject({ url: base, credentials: credentials.exactOptional() })], {
  error: `${BASE_ERROR}, or a map of url and credentials`,
});

const settings = z.strictObject({
  peers: z
    .array(base)
    .default([])
    .describe("Other registries that a search also asks, by base URL such as `https://agents.example.com/registry`."),
  registerWith: z
    .array(target)
    .default([])
    .describe(
      "Other registries where the public agents of this server are registered while it runs, by URL, or `{ url, credentials }` with credentials as for `remote`.",
    ),
  allowPrivateTargets: optional(
    z.boolean(),
    "Allow cards in private networks and on this machine; anyone who may register can then make the server read there. Default: only for a server that only this machine can reach.",
  ),
  visibility: z
    .enum(VISIBILITIES)
    .default("private")
    .describe(
      "Who sees agents that are registered without `visibility`: their owner (`private`) or every caller (`public`).",
    ),
  refresh: wait.prefault("10m").describe("How often the cards of registered agents are read again."),
  agentsPerOwner: count
    .default(DEFAULT_REGISTRY_LIMITS.agentsPerOwner)
    .describe("Agents that one owner may have registered; more are answered with 429."),
  agents: count.default(DEFAULT_REGISTRY_LIMITS.agents).describe("Agents in the registry, of all owners together."),
  signatures: z
    .enum(SIGNATURE_POLICIES)
    .default("prefer")
    .describe(
      "Cards that are refused: those that no trusted key has signed (`require`), those with an invalid signature (`prefer`), none for their signature (`ignore`).",
    ),
  keyFiles: optional(
    z.array(text),
    "Files with public keys that are trusted to sign cards: PEM, JWK or JWK set, relative to this file.",
  ),
  jkuOrigins: optional(z.array(origin), "Origins from which key sets that signatures refer to are fetched."),
});

const REGISTRY_ERROR = "must be false or the settings of the registry";
const off = z
  .boolean()
  .refine((value) => !value, { error: REGISTRY_ERROR })
  .transform(() => false as const);
const registry = z
  .union([off, settings], { error: REGISTRY_ERROR })
  .prefault({})
  .describe("The registry of agents at `/registry`; `registry: false` serves none.");

/** The same as an option of `serve`. */
const registryOptions = z.union([
  off,
  z.strictObject({
    peers: z.array(base).optional(),
    allowPrivateTargets: z.boolean().optional(),
    visibility: z.enum(VISIBILITIES).optional(),
    refreshMs: z.number().min(1).optional(),
    agentsPerOwner: count.optional(),
    agents: count.optional(),
    signatures: z.enum(SIGNATURE_POLICIES).optional(),
    cardKeys: z.array(z.record(z.string(), z.unknown())).optional(),
    keyFiles: z.array(text).optional(),
    jkuOrigins: z.array(origin).optional(),
    unlisted: z.array(text).optional(),
    registerWith: z.array(z.union([base, z.looseObject({ url: base })])).optional(),
  } satisfies Record<keyof RegistryServeOptions, z.ZodType>),
]);

type ParsedRegistry = z.output<typeof registry>;

/** `unlisted` are the agents whose `visibility` is `private`. */
function toRegistryConfig(parsed: ParsedRegistry, unlisted: readonly string[], absolute: (file: string) => string) {
  if (parsed === false) return false as const;
  const { refresh, keyFiles, ...rest } = parsed;
  return {
    ...rest,
    refreshMs: refresh,
    ...(keyFiles && { keyFiles: keyFiles.map(absolute) }),
    ...(unlisted.length > 0 && { unlisted }),
  };
}

const urlOfTarget = (target: ParsedTarget): string => (typeof target === "string" ? target : target.url);

type ParsedTarget = z.output<typeof target>;

export type RegistryConfig = ReturnType<typeof toRegistryConfig>;

function* registryValues(config: RegistryConfig): ShownValues {
  if (config === false) {
    yield ["registry", false];
    return;
  }
  const { refreshMs, registerWith, unlisted: _, ...rest } = config;
  yield* membersOf("registry", { ...rest, registerWith: registerWith.map(urlOfTarget) });
  yield ["registry.refresh", formatDuration(refreshMs)];
}

export const registrySection: ConfigSection<ParsedRegistry, RegistryConfig> = {
  schema: registry,
  options: registryOptions,
  toConfig(parsed, { absolute, agents }) {
    const unlisted = Object.keys(agents).filter((name) => agents[name]?.visibility === "private");
    return toRegistryConfig(parsed, unlisted, absolute);
  },
  shown: registryValues,
  secrets: (config) => {
    const targets = config === false ? [] : (config.registerWith ?? []);
    return targets.flatMap((target) => (typeof target === "string" ? [] : secretsOfCredentials(target.credentials)));
  },
};
