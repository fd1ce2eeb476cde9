import type { Agent } from "../../core/engine/agent.ts";
import { type CodeAgentOptions, declareAgent } from "../../core/server/config/code-agents.ts";
import { generalKeys } from "../../core/server/config/schema.ts";
import { remoteKeys } from "./config-schema.ts";

export interface RemoteOptions extends CodeAgentOptions {
  /** Dialect in which the agent is called, e.g. `a2a-v03`. Default: as its card says. */
  readonly dialect?: string;
  /** Binding over which it is called. Default: as its card says. */
  readonly binding?: "JSONRPC" | "HTTP+JSON" | "GRPC";
  /** How to log in there: one of `bearer`, `apiKey`, `basic`, `oauth`, and `ak` with `sk`. */
  readonly credentials?: Login;
  /** Other origins that its card may refer to; they also receive the credentials, and may be in private networks. */
  readonly origins?: readonly string[];
  /** False to poll its tasks instead of streaming them. Default: as its card says. */
  readonly streaming?: boolean;
}

/** Not inferred from the schema, whose types would become part of the public ones. */
interface Login {
  /** A token, sent as `Authorization: Bearer`. */
  readonly bearer?: string;
  /** An API key, sent where the card of the agent expects it. Default: the header `X-API-Key`. */
  readonly apiKey?: string;
  /** With `apiKey`: header for the key, whatever the card says. */
  readonly header?: string;
  /** User and password, sent by HTTP Basic. */
  readonly basic?: { readonly user: string; readonly password: string };
  /** Tokens that are requested with client credentials, at `tokenUrl` or as the `issuer` says. */
  readonly oauth?: {
    readonly tokenUrl?: string;
    readonly issuer?: string;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly scopes?: readonly string[];
  };
  /** With `sk`: id of the key that signs requests, in dialects with signed requests. */
  readonly ak?: string;
  /** With `ak`: the key itself, which is never sent. */
  readonly sk?: string;
}

/**
 * An agent that is served from a remote one: a URL of it or of its card, in any dialect, `skill:<id>` or a name to look
 * up in the registry, or `a2a-lite:<network>/<room>#<peer>`.
 */
export function remote(url: string, options: RemoteOptions = {}): Agent {
  return declareAgent("remote", generalKeys.extend(remoteKeys()), { ...options, remote: url }, (parsed) => parsed);
}
