/** `remote:` in a configuration. */

import { z } from "zod";
import { dialectNames } from "../../core/client/dialect-names.ts";
import { findAddressKind } from "../../core/client/dialects.ts";
import { redactUrl } from "../../core/client/errors.ts";
import { formatReference, parseReference, type RegistryReference } from "../../core/client/reference.ts";
import type { AgentKind } from "../../core/extension/contract.ts";
import { loadedEntries } from "../../core/extension/installed.ts";
import type { Fields } from "../../core/model/json.ts";
import {
  ADDRESS_ERROR,
  address,
  checkCredentials,
  credentials,
  origin,
  secretsOfCredentials,
} from "../../core/server/config/credentials.ts";
import { membersOf } from "../../core/server/config/shown-values.ts";
import type { Finding } from "../../core/yaml/problems.ts";
import { optional } from "../../core/yaml/value-types.ts";
import type { RemoteSource } from "./build-remote.ts";

const URL_ONLY = ["dialect", "binding", "credentials", "origins"] as const;

const otherForms = () => loadedEntries("calling", "addresses").map(([, { form }]) => `, ${form}`);
const reference = z.string().refine((text) => parseReference(text) !== undefined);
const otherAddress = z.string().refine((text) => findAddressKind(text)?.isValid(text) === true);

export const remoteKeys = () => ({
  remote: optional(
    z.union([address, otherAddress, reference], {
      error: () => `${ADDRESS_ERROR}${otherForms().join("")}, skill:<id>, or the name of an agent in the registry`,
    }),
    "URL of a remote agent or of its card, in any dialect: the agent is served from it. It may be in a private network. Or `skill:<id>`, or the name or id of an agent: it is looked up in the registry of this server and its peers when a task begins. Or `a2a-lite:<network>/<room>#<peer>`: a participant of a chat room, which is called over the entry of `channels` that is in that room.",
  ),
  dialect: optional(
    z.enum([...dialectNames()]),
    "With `remote`: dialect in which it is called; default: as its card says.",
  ),
  binding: optional(
    z.enum(["JSONRPC", "HTTP+JSON", "GRPC"]),
    "With `remote`: binding over which it is called; default: as its card says.",
  ),
  credentials: optional(credentials, "With `remote`: how to log in there."),
  origins: optional(
    z.array(origin).min(1, { error: "must name at least one" }),
    "With `remote`: other origins that its card may refer to. Only these also receive the credentials, may be in private networks, and may be called over gRPC.",
  ),
  streaming: optional(
    z.boolean(),
    "With `remote`: `false` to poll the agent's tasks instead of streaming them; default: as its card says.",
  ),
});

type Source =
  | ({ readonly kind: "url" } & RemoteSource)
  /** Not a URL, but of a kind that an extension knows. */
  | { readonly kind: "address"; readonly address: string }
  | { readonly kind: "found"; readonly wanted: RegistryReference };

export const remoteKind: AgentKind<Source> = {
  get keys() {
    return remoteKeys();
  },
  check(name, agent) {
    const { remote } = agent;
    const why = typeof remote === "string" ? whyNoUrl(remote) : undefined;
    return why === undefined
      ? checkCredentials(agent.credentials, ["agents", name, "credentials"])
      : checkUrlOnly(name, agent, why);
  },
  toSource(parsed) {
    const {
      remote: url,
      dialect,
      binding,
      credentials,
      origins,
      streaming,
    } = parsed as unknown as RemoteSource & {
      readonly remote: string;
    };
    const wanted = parseReference(url);
    if (wanted !== undefined) return { kind: "found", wanted };
    if (findAddressKind(url) !== undefined) return { kind: "address", address: url };
    return { kind: "url", url, dialect, binding, credentials, origins, streaming } as Source;
  },
  async build(source, around) {
    const { name, overrides } = around;
    if (source.kind === "address") {
      const kind = findAddressKind(source.address);
      if (kind === undefined) throw new TypeError(`No extension knows addresses such as ${source.address}.`);
      return kind.build(source.address, around);
    }
    if (source.kind === "found") {
      const { createFindingAgent } = await import("./finding-agent.ts");
      const { timeoutMs: timeout, ...about } = overrides;
      return createFindingAgent({ name, ...about, ...(timeout !== undefined && { timeout }), wanted: source.wanted });
    }
    const { buildRemoteAgent } = await import("./build-remote.ts");
    return buildRemoteAgent(name, source, overrides, around);
  },
  appliesOverrides: true,
  summary(source) {
    if (source.kind === "url") return `remote: ${redactUrl(source.url)}`;
    return `remote: ${source.kind === "found" ? formatReference(source.wanted) : source.address}`;
  },
  *shown(path, source) {
    if (source.kind === "address") yield [`${path}.remote`, source.address];
    else if (source.kind === "found") yield [`${path}.remote`, formatReference(source.wanted)];
    else {
      const { url, dialect, binding, credentials = {}, origins, streaming } = source;
      yield* membersOf(path, { remote: url, dialect, binding, origins, streaming });
      const { basic, oauth, ...rest } = credentials;
      yield* membersOf(`${path}.credentials`, rest);
      yield* membersOf(`${path}.credentials.basic`, basic);
      yield* membersOf(`${path}.credentials.oauth`, oauth);
    }
  },
  secrets: (source) => (source.kind === "url" ? secretsOfCredentials(source.credentials) : []),
};

/** Why keys that belong to a URL mean nothing. */
function whyNoUrl(remote: string): string | undefined {
  if (parseReference(remote) !== undefined) return "it is not known which agent the registry returns";
  return findAddressKind(remote) === undefined ? undefined : "this agent is called otherwise";
}

function checkUrlOnly(name: string, agent: Fields, why: string): readonly Finding[] {
  return [...URL_ONLY, "streaming"]
    .filter((key) => agent[key] !== undefined)
    .map((key) => ({ path: ["agents", name, key], message: `has a meaning only beside a URL: ${why}` }));
}
