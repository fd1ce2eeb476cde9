import { type AgentDefinition, defineAgent } from "../../core/agents/define.ts";
import { describeUpstream } from "../../core/agents/describe-upstream.ts";
import { createForwardingAgent } from "../../core/agents/forward.ts";
import { UPSTREAM, type UpstreamAgent } from "../../core/agents/upstream-of.ts";
import type { Agent, Turn } from "../../core/engine/agent.ts";
import type { AgentCard, AgentProfile } from "../../core/model/card.ts";
import { Upstream, type UpstreamOptions } from "./upstream.ts";

interface UpstreamAgentOptions extends UpstreamOptions {
  /** Take precedence over what the card of the upstream says. */
  readonly overrides?: Partial<Pick<AgentDefinition, "name" | "description" | "skills" | "inputModes">> &
    Pick<AgentDefinition, "concurrency" | "onCrash" | "repeatTextInStatus" | "timeout">;
}

/**
 * An agent that is served from a remote one. It can be called at once; `upstreamOf(agent).start()` reads the card in the
 * background.
 */
export function createUpstreamAgent({ overrides = {}, ...options }: UpstreamAgentOptions): Agent {
  const upstream = new Upstream(options);
  const { url } = upstream.status;
  const profileOf = (card: AgentCard | undefined): AgentProfile => {
    const described = describeUpstream(options.agent, url, card);
    return defineAgent({ ...described, ...overrides, run: () => undefined }).profile;
  };
  let shown = { card: upstream.card, profile: profileOf(upstream.card) };
  const { description, name } = shown.profile;
  const connect = ({ attempt, signal }: Turn) =>
    upstream.isConnected ? upstream : upstream.connect(signal, attempt > 1).then(() => upstream);
  const forwarding = createForwardingAgent({ name, description, ...overrides, peer: upstream, connect });
  const agent: UpstreamAgent = {
    /** The same object until the card changes. */
    get profile() {
      if (upstream.card !== shown.card) shown = { card: upstream.card, profile: profileOf(upstream.card) };
      return shown.profile;
    },
    get onCrash() {
      return forwarding.onCrash;
    },
    ...(forwarding.crashText !== undefined && { crashText: forwarding.crashText }),
    concurrency: forwarding.concurrency,
    timeoutMs: forwarding.timeoutMs,
    run: (turn) => forwarding.run(turn),
    dropped: async (task) => forwarding.dropped?.(task),
    [UPSTREAM]: upstream,
  };
  return agent;
}
