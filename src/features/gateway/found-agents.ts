/** Agents of other servers that a registry knows: which one is taken, and how it is called. */

import type { CallableAgent, ChosenAgent } from "../../core/agents/directory.ts";
import { type FetchedCard, fetchCard, readGivenCard } from "../../core/client/card/fetch-card.ts";
import { ConnectionError, redactUrl } from "../../core/client/errors.ts";
import { DEFAULT_STREAM_RETRY, type RetryOptions } from "../../core/client/options.ts";
import { describeImpostor, HELD_BACK } from "../../core/client/registry-identity.ts";
import { parseGrpcAddress } from "../../core/client/transport/grpc-channels.ts";
import type { AgentCard, AgentInterface } from "../../core/model/card.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import { EXTENSIONS } from "../../core/model/extensions.ts";
import type { AgentChooser, AgentChooserOptions, FoundAgent, WantedAgent } from "../../core/server/agent-chooser.ts";
import { Upstream } from "./upstream.ts";

/** For the card of one candidate: there may be others. */
const CARD_MS = 5_000;
const CARD_RETRY: RetryOptions = { attempts: 2, baseMs: 100, capMs: 500 };
/** Reasons that are named when none can be reached. */
const MAX_REASONS = 3;

export function createAgentChooser({ find, isOwn, ...tools }: AgentChooserOptions): AgentChooser {
  async function reach(
    chosen: ChosenAgent,
    retry: RetryOptions,
    isSuitable: (card: AgentCard) => boolean = () => true,
  ) {
    // One that has stopped must not be taken because its card is still in a cache, so each call has a cache of its own.
    const fetch: typeof globalThis.fetch = (input, init) => tools.fetch(input, init);
    const card =
      chosen.card === undefined
        ? await fetchCard(chosen.url, { fetch, timeoutMs: CARD_MS, retry })
        : await readGivenCard(chosen.card, chosen.url);
    return isSuitable(card.card) ? connectTo(chosen, card, tools) : undefined;
  }

  return {
    async choose(wanted, caller, { avoid = [] } = {}) {
      const reasons: string[] = [];
      const unanswered: string[] = [];
      const tried = new Set<string>();
      let isRefused = false;
      for await (const found of find(wanted, caller)) {
        unanswered.push(...found.unanswered);
        const others = found.agents.filter((agent) => !tried.has(keyOf(agent)) && !isOwn(agent.url));
        for (const { healthy: _, score: __, heldBack, identity, ...chosen } of rank(others, avoid)) {
          tried.add(keyOf(chosen));
          const isAccepted = (refusal: string | undefined) => {
            if (refusal === undefined) return true;
            reasons.push(`${redactUrl(chosen.url)}: ${refusal}`);
            isRefused = true;
            return false;
          };
          if (!isAccepted(heldBack === true ? HELD_BACK : undefined)) continue;
          try {
            const agent = await reach(
              chosen,
              CARD_RETRY,
              (card) => isAccepted(describeImpostor(identity, card)) && isWanted(card, wanted),
            );
            if (agent !== undefined) return agent;
          } catch (error) {
            if (!ProtocolError.is(error) && !ConnectionError.is(error)) throw error;
            reasons.push(`${redactUrl(chosen.url)}: ${error.message}`);
          }
        }
        // Another agent with the same name, further away, is not the one that is meant.
        if ("registered" in wanted && isRefused) break;
      }
      throw notFound(wanted, reasons, unanswered);
    },
    async reach(chosen) {
      try {
        return (await reach(chosen, DEFAULT_STREAM_RETRY)) as CallableAgent;
      } catch (error) {
        if (!ConnectionError.is(error)) throw error;
        throw new ProtocolError("UNAVAILABLE", `${redactUrl(chosen.url)}: ${error.message}`, { cause: error });
      }
    },
  };
}

/** Healthy ones first, then the best match; the id decides between equals, so that the choice can be foreseen. */
function rank(agents: readonly FoundAgent[], avoid: readonly ChosenAgent[]): readonly FoundAgent[] {
  const isAvoided = (agent: FoundAgent) => Number(avoid.some((tried) => keyOf(tried) === keyOf(agent)));
  return [...agents].sort(
    (one, other) =>
      isAvoided(one) - isAvoided(other) ||
      Number(other.healthy) - Number(one.healthy) ||
      other.score - one.score ||
      (keyOf(one) < keyOf(other) ? -1 : 1),
  );
}

/** Two registries may give the same id to different agents. */
const keyOf = ({ id, url }: ChosenAgent): string => `${id} ${url}`;

/** One that itself looks for another with the same skill may find this server again. */
function isWanted({ capabilities, skills }: AgentCard, wanted: WantedAgent): boolean {
  if (!("skill" in wanted)) return true;
  const forwards = capabilities.extensions?.some(
    ({ params, uri }) => uri === EXTENSIONS.upstream && params?.skill === wanted.skill,
  );
  return forwards !== true && skills.some(({ id }) => id === wanted.skill);
}

async function connectTo(
  chosen: ChosenAgent,
  card: FetchedCard,
  tools: Pick<AgentChooserOptions, "fetch" | "clock" | "random" | "log">,
): Promise<CallableAgent> {
  const { fetch, ...others } = tools;
  const { url } = chosen;
  const name = redactUrl(url).replace(/\/\.well-known\/agent(?:-card)?\.json$/, "");
  const mayCall = (entry: AgentInterface) => isOnHostOf(url, entry);
  const upstream = new Upstream({ ...others, agent: name, url, card, connect: { fetch }, mayCall });
  await upstream.connect();
  return {
    name,
    chosen,
    isLocal: false,
    get dialect() {
      return upstream.dialect ?? "";
    },
    get can() {
      return upstream.can;
    },
    get recognizesRepeats() {
      return upstream.recognizesRepeats;
    },
    dispatch: (operation, call) => upstream.dispatch(operation, call),
  };
}

/** Addresses over gRPC are not checked when connecting, so they must be on the host of the card, which was. */
function isOnHostOf(cardUrl: string, { protocolBinding, url }: AgentInterface): boolean {
  if (protocolBinding.toUpperCase() !== "GRPC") return true;
  const authority = parseGrpcAddress(url, { cardUrl })?.authority ?? "";
  return authority.slice(0, authority.lastIndexOf(":")) === new URL(cardUrl).hostname;
}

function notFound(wanted: WantedAgent, reasons: readonly string[], unanswered: readonly string[]): ProtocolError {
  const what =
    "skill" in wanted ? `agent with the skill "${wanted.skill}"` : `agent "${wanted.registered}" of the registry`;
  const silent = unanswered.length === 0 ? "" : ` Not answered: ${unanswered.join("; ")}.`;
  if (reasons.length > 0) {
    const named = reasons.slice(0, MAX_REASONS).join(" ");
    return new ProtocolError("UNAVAILABLE", `No ${what} can be reached. ${named}${silent}`);
  }
  const code = unanswered.length > 0 ? "UNAVAILABLE" : "INVALID_PARAMS";
  return new ProtocolError(code, `There is no ${what}.${silent}`);
}
