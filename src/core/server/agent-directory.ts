import { toStream } from "../agents/child-task.ts";
import type { AgentDirectory, AgentTarget, CallableAgent, ResolveOptions } from "../agents/directory.ts";
import type { AgentCaller } from "../client/call/agent-caller.ts";
import { ConnectionError, redactUrl } from "../client/errors.ts";
import { abilitiesWithout } from "../dialects/shared/abilities.ts";
import { ProtocolError } from "../model/errors.ts";
import type { CallContext, FrameStream, Operation, OutcomeOf, SendInput } from "../model/operation.ts";
import { closestMatch } from "../model/suggestions.ts";
import type { AgentChooser } from "./agent-chooser.ts";
import type { ServedAgentService } from "./agent-service.ts";
import type { Carriers } from "./carriers/carriers.ts";
import type { Upstreams } from "./upstreams.ts";

/** Shown in place of a dialect where there is no network between two agents. */
const LOCAL_DIALECT = "local";
const WEB_URL = /^https?:/i;
/** How long a run waits for the cards of remote agents, which may have the skill it needs. */
const CARDS_MS = 10_000;

interface DirectoryOptions {
  readonly services: ReadonlyMap<string, ServedAgentService>;
  readonly upstreams: Pick<Upstreams, "readMissingCards">;
  /** URLs are those that the operator has written. */
  readonly connect: (url: string) => Promise<AgentCaller>;
  /** Finds who can be called over a connection of this server. */
  readonly findPeer?: Carriers["findPeer"];
  /** Looks for agents of other servers; absent if there is no registry. */
  readonly chooser?: AgentChooser;
}

type Asking = Parameters<AgentDirectory["resolve"]>[1];

/** The agents of a server as its runs call them, as the caller of the run, and others by their URLs. */
export function createAgentDirectory(options: DirectoryOptions): AgentDirectory {
  const { chooser, connect, findPeer, services, upstreams } = options;
  const connections = new Map<string, Promise<AgentCaller>>();

  function findByName(name: string): CallableAgent {
    const service = services.get(name);
    if (service !== undefined) return toLocalAgent(service);
    const names = [...services.keys()];
    const meant = closestMatch(name, names);
    const hint = meant === undefined ? `Agents: ${names.join(", ")}.` : `Did you mean ${meant}?`;
    throw unresolved(`There is no agent "${name}". ${hint}`);
  }

  const withSkill = (skill: string) => [...services.values()].filter((service) => hasSkill(service, skill));

  async function findBySkill(skill: string, { caller }: Asking, options: ResolveOptions): Promise<CallableAgent> {
    const unread = withSkill(skill).length === 0 ? await waitForSkill(skill) : [];
    const found = withSkill(skill);
    if (found.length === 0 && chooser !== undefined) {
      try {
        return await chooser.choose({ skill }, caller, options);
      } catch (error) {
        if (!ProtocolError.is(error) || error.code !== "INVALID_PARAMS") throw error;
      }
    }
    const [first, ...others] = found;
    if (first !== undefined && others.length === 0) return toLocalAgent(first);
    if (first !== undefined) {
      const names = found.map(({ name }) => name).join(", ");
      throw unresolved(`More than one agent has the skill "${skill}": ${names}. Name one of them.`);
    }
    const skills = new Set([...services.values()].flatMap(({ profile }) => profile.skills.map(({ id }) => id)));
    const message = `No agent has the skill "${skill}". Skills: ${[...skills].join(", ")}.`;
    if (unread.length === 0) throw unresolved(message);
    throw new ProtocolError("UNAVAILABLE", `${message} Skills not known yet: ${unread.join("; ")}`);
  }

  /** Until a remote agent whose card was not read yet has the skill. Returns which cards could not be read, and why. */
  async function waitForSkill(skill: string): Promise<readonly string[]> {
    const unread: string[] = [];
    const reading = [...upstreams.readMissingCards(AbortSignal.timeout(CARDS_MS))].map(async ([name, card]) => {
      await card.catch((error: unknown) => {
        unread.push(ProtocolError.is(error) ? error.message : `Agent ${name}: no card within ${CARDS_MS / 1_000} s.`);
      });
      const service = services.get(name);
      if (service === undefined || !hasSkill(service, skill)) throw new Error(`${name} does not have the skill.`);
    });
    await Promise.any(reading).catch(() => {});
    return unread;
  }

  function findOnCarrier(address: string): CallableAgent {
    const found = findPeer?.(address);
    if (found === undefined) throw unresolved(`No connection of this server reaches ${address}.`);
    const { dialect, peer } = found;
    return {
      name: address,
      dialect,
      isLocal: false,
      can: peer.can,
      dispatch: (operation, call) => peer.dispatch(operation, call),
    };
  }

  /** Connects once for all runs, and again after the connection has failed. */
  async function findByUrl(url: string): Promise<CallableAgent> {
    if (!WEB_URL.test(url)) return findOnCarrier(url);
    let connecting = connections.get(url);
    if (connecting === undefined) {
      connecting = connect(url);
      connections.set(url, connecting);
    }
    const forget = () => {
      if (connections.get(url) === connecting) connections.delete(url);
    };
    try {
      return toRemoteAgent(url, await connecting, forget);
    } catch (error) {
      forget();
      throw error;
    }
  }

  async function findElsewhere(
    target: Exclude<AgentTarget, { agent: string } | { url: string }>,
    { caller }: Asking,
    options: ResolveOptions,
  ): Promise<CallableAgent> {
    if (chooser === undefined) {
      throw new ProtocolError("UNAVAILABLE", "Agents of other servers cannot be found: the registry is off.");
    }
    return "chosen" in target ? chooser.reach(target.chosen) : chooser.choose(target, caller, options);
  }

  return {
    async resolve(target, turn, options = {}) {
      if ("agent" in target) return findByName(target.agent);
      if ("url" in target) return findByUrl(target.url);
      return "skill" in target && options.elsewhere !== true
        ? findBySkill(target.skill, turn, options)
        : findElsewhere(target, turn, options);
    },
  };
}

function hasSkill({ profile }: ServedAgentService, skill: string): boolean {
  return profile.skills.some(({ id }) => id === skill);
}

function unresolved(message: string): ProtocolError {
  return new ProtocolError("INVALID_PARAMS", message);
}

function toRemoteAgent(url: string, caller: AgentCaller, forget: () => void): CallableAgent {
  return {
    name: redactUrl(url),
    get dialect() {
      return caller.interface.dialect;
    },
    isLocal: false,
    get can() {
      return caller.can;
    },
    recognizesRepeats: caller.recognizesRepeats,
    async dispatch(operation, call) {
      try {
        return await caller.dispatch(operation, call);
      } catch (error) {
        if (ConnectionError.is(error)) forget();
        throw error;
      }
    },
  };
}

function toLocalAgent(service: ServedAgentService): CallableAgent {
  const { streaming } = service.profile;
  return {
    name: service.name,
    dialect: LOCAL_DIALECT,
    isLocal: true,
    // A task that cannot be followed is found by sending again, which waits for its end.
    can: streaming ? abilitiesWithout() : undefined,
    recognizesRepeats: true,
    dispatch: <O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>> => {
      const own = withoutExpiry(call);
      if (operation.kind !== "stream" || streaming) return service.dispatch(operation, own);
      return sendInstead(service, operation, own) as Promise<OutcomeOf<O>>;
    },
  };
}

/** The work continues after the caller's credentials have expired, as it does after the caller has left. */
function withoutExpiry(call: CallContext): CallContext {
  const { expires: _, ...caller } = call.caller;
  return { ...call, caller };
}

async function sendInstead(service: ServedAgentService, input: SendInput, call: CallContext): Promise<FrameStream> {
  const event = await service.dispatch({ ...input, kind: "send" }, call);
  return toStream(event);
}
