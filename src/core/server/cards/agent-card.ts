import type {
  AgentCard,
  AgentExtension,
  AgentInterface,
  AgentProfile,
  AgentSkill,
  ExtendedProfile,
  ProfileSkill,
} from "../../model/card.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { DeclaredSecurity } from "../access/authentication.ts";

/** Capabilities of every served agent, in addition to its own extensions. */
const SERVER_EXTENSIONS: readonly AgentExtension[] = [
  {
    uri: EXTENSIONS.replay,
    description: "A stream resumed with Last-Event-ID continues with the next event, without a snapshot first.",
  },
  {
    uri: EXTENSIONS.idempotency,
    description: "A message sent again with the same messageId is not run twice.",
  },
  {
    uri: EXTENSIONS.hops,
    description:
      "A request tells in its metadata which agents it came through, and how long its caller waits; one that came through too many is refused.",
  },
];

interface CardOptions {
  /** Whether callers can authenticate. */
  readonly identifies: boolean;
  readonly security: DeclaredSecurity;
  readonly push: boolean;
}

/** An extended card is offered only where callers can authenticate. */
export function toAgentCard(
  profile: AgentProfile,
  interfaces: readonly AgentInterface[],
  { identifies, security, push }: CardOptions,
): AgentCard {
  const { schemes, requirements } = security;
  return {
    name: profile.name,
    description: profile.description,
    supportedInterfaces: interfaces,
    provider: profile.provider,
    version: profile.version,
    documentationUrl: profile.documentationUrl,
    capabilities: {
      streaming: profile.streaming,
      pushNotifications: push,
      extendedAgentCard: identifies && profile.extended !== undefined,
      extensions: [...SERVER_EXTENSIONS, ...profile.extensions],
    },
    securitySchemes: Object.keys(schemes).length > 0 ? schemes : undefined,
    securityRequirements: requirements.length > 0 ? requirements : undefined,
    defaultInputModes: profile.inputModes,
    defaultOutputModes: profile.outputModes,
    skills: profile.skills.map((skill) => toCardSkill(skill, security)),
    iconUrl: profile.iconUrl,
  };
}

/** The card for authenticated callers. */
export function toExtendedCard(card: AgentCard, extended: ExtendedProfile, security: DeclaredSecurity): AgentCard {
  // The signatures cover the public card only.
  const { signatures: _, ...unsigned } = card;
  return {
    ...unsigned,
    description: extended.description ?? card.description,
    skills: [...card.skills, ...(extended.skills ?? []).map((skill) => toCardSkill(skill, security))],
  };
}

/** Scopes are required with every security scheme. */
function toCardSkill({ scopes, ...skill }: ProfileSkill, { schemes }: DeclaredSecurity): AgentSkill {
  if (scopes === undefined || scopes.length === 0 || skill.securityRequirements !== undefined) return skill;
  const requirements = Object.keys(schemes).map((name) => ({ schemes: { [name]: { list: scopes } } }));
  return requirements.length === 0 ? skill : { ...skill, securityRequirements: requirements };
}

/** The requested extensions that this agent supports, in the order of the request. */
export function activatedExtensions(card: AgentCard, requested: readonly string[]): readonly string[] {
  if (requested.length === 0) return requested;
  const offered = new Set(card.capabilities.extensions?.map(({ uri }) => uri));
  return requested.filter((uri) => offered.has(uri));
}
