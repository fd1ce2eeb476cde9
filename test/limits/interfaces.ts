/** Every dialect over every binding it is served by, as our own client calls them. */
import { connect } from "../../src/core/client/connect.ts";
import type { ConnectOptions, RemoteAgent } from "../../src/core/client/options.ts";

export interface Spoken {
  readonly dialect: string;
  readonly binding: string;
}

export const INTERFACES = [
  { dialect: "a2a-v1", binding: "JSONRPC" },
  { dialect: "a2a-v1", binding: "HTTP+JSON" },
  { dialect: "a2a-v1", binding: "GRPC" },
  { dialect: "a2a-v03", binding: "JSONRPC" },
  { dialect: "a2a-v03", binding: "HTTP+JSON" },
  { dialect: "a2a-v03", binding: "GRPC" },
  { dialect: "a2a-v01", binding: "JSONRPC" },
  { dialect: "tasks-rest", binding: "HTTP+JSON" },
] as const satisfies readonly Spoken[];

/** Asks once: what is refused is to be seen, not repeated. */
export function speaking(
  url: string,
  { dialect, binding }: Spoken,
  options: ConnectOptions = {},
): Promise<RemoteAgent> {
  const forced = dialect === "tasks-rest" ? { dialect } : { dialect, binding };
  return connect(url, { ...forced, retry: { attempts: 1, baseMs: 1, capMs: 1 }, ...options });
}
