import type { Agent } from "../../core/engine/agent.ts";
import { type CodeAgentOptions, declareAgent } from "../../core/server/config/code-agents.ts";
import type { RemoteCredentials } from "../../core/server/config/credentials.ts";
import { generalKeys } from "../../core/server/config/schema.ts";
import { remoteKeys } from "./config-schema.ts";

export interface RemoteOptions extends CodeAgentOptions {
  /** Dialect in which the agent is called, e.g. `a2a-v03`. Default: as its card says. */
  readonly dialect?: string;
  /** Binding over which it is called. Default: as its card says. */
  readonly binding?: "JSONRPC" | "HTTP+JSON" | "GRPC";
  /** How to log in there: one of `bearer`, `apiKey`, `basic`, `oauth`, and `ak` with `sk`. */
  readonly credentials?: RemoteCredentials;
  /** Other origins that its card may refer to; they also receive the credentials, and may be in private networks. */
  readonly origins?: readonly string[];
  /** False to poll its tasks instead of streaming them. Default: as its card says. */
  readonly streaming?: boolean;
}

/**
 * An agent that is served from a remote one: a URL of it or of its card, in any dialect, `skill:<id>` or a name to look
 * up in the registry, or `a2a-lite:<network>/<room>#<peer>`.
 */
export function remote(url: string, options: RemoteOptions = {}): Agent {
  return declareAgent("remote", generalKeys.extend(remoteKeys()), { ...options, remote: url }, (parsed) => parsed);
}
