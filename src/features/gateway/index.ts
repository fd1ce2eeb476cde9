import { type AgentDefinition, defineAgent } from "../../core/agents/define.ts";
import { describeUpstream } from "../../core/agents/describe-upstream.ts";
import { createForwardingAgent, failed } from "../../core/agents/forward.ts";
import { UPSTREAM, type UpstreamAgent } from "../../core/agents/upstream-of.ts";
import type { Agent, AgentRun } from "../../core/engine/agent.ts";
import type { Signal } from "../../core/model/abort.ts";
import type { AgentCard, AgentProfile } from "../../core/model/card.ts";
import { ProtocolError } from "../../core/model/errors.ts";
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
  const forwarding = createForwardingAgent({ name, description, ...overrides, peer: upstream });
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
    run: (turn) =>
      upstream.isConnected
        ? forwarding.run(turn)
        : beginLater(turn.signal, async () => {
            await upstream.connect(turn.signal, turn.attempt > 1);
            return forwarding.run(turn);
          }),
    dropped: async (task) => forwarding.dropped?.(task),
    [UPSTREAM]: upstream,
  };
  return agent;
}

/** What the other agent supports must be known before anything is sent to it. One that cannot be reached fails the task. */
export function beginLater(signal: Signal, begin: () => Promise<AgentRun>): AgentRun {
  let run: AgentRun | undefined;
  let failure: string | undefined;
  return {
    async next() {
      if (failure !== undefined) return { done: true, value: undefined };
      if (run === undefined) {
        try {
          run = await begin();
        } catch (error) {
          if (signal.aborted) return { done: true, value: undefined };
          if (!ProtocolError.is(error)) throw error;
          failure = error.message;
          return { done: false, value: failed(failure) };
        }
      }
      return run.next();
    },
    async return(value) {
      return (await run?.return?.(value)) ?? { done: true, value: undefined };
    },
  };
}
