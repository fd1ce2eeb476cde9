import type { Agent } from "../../core/engine/agent.ts";
import type { Log } from "../../core/model/ports.ts";
import { systemTools } from "../../core/server/clock-and-ids.ts";
import type { AgentOverrides } from "../../core/server/config/config.ts";
import { createGrpcCheck, openRemote, type RemoteAddress } from "../../core/server/outbound.ts";
import { createUpstreamAgent } from "./index.ts";

export interface RemoteSource extends RemoteAddress {
  readonly streaming?: boolean;
}

interface BuildRemoteOptions {
  readonly strict: boolean;
  readonly log: Log;
}

export function buildRemoteAgent(
  name: string,
  source: RemoteSource,
  { timeoutMs, ...overrides }: AgentOverrides,
  { strict, log }: BuildRemoteOptions,
): Agent {
  const { url } = source;
  const { connect, exchange, hosts, readCard } = openRemote(source);
  return createUpstreamAgent({
    agent: name,
    url,
    connect: { ...connect, strict },
    exchange,
    mayCall: createGrpcCheck(name, url, hosts, log),
    ...(readCard && { onCard: readCard }),
    streaming: source.streaming,
    ...(timeoutMs !== undefined && { answerMs: timeoutMs }),
    ...systemTools,
    log,
    overrides: timeoutMs === undefined ? overrides : { ...overrides, timeout: timeoutMs },
  });
}
