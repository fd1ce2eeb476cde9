import type { AgentCard, AgentExtension, AgentInterface, AgentProfile } from "../model/card.ts";
import { EXTENSIONS } from "../model/extensions.ts";

/** What every agent served here can do beside its own extensions. */
const OWN_EXTENSIONS: readonly AgentExtension[] = [
  {
    uri: EXTENSIONS.replay,
    description: "A stream resumed with Last-Event-ID goes on with the next event, without a snapshot first.",
  },
  {
    uri: EXTENSIONS.idempotency,
    description: "A message sent again with the same messageId is not run twice.",
  },
];

/** An extended card is offered only where callers can show who they are. */
export function toAgentCard(
  profile: AgentProfile,
  interfaces: readonly AgentInterface[],
  { authenticates, push }: { readonly authenticates: boolean; readonly push: boolean },
): AgentCard {
  return {
    name: profile.name,
    description: profile.description,
    supportedInterfaces: interfaces,
    ...(profile.provider === undefined ? undefined : { provider: profile.provider }),
    version: profile.version,
    ...(profile.documentationUrl === undefined ? undefined : { documentationUrl: profile.documentationUrl }),
    capabilities: {
      streaming: profile.streaming,
      pushNotifications: push,
      extendedAgentCard: authenticates && profile.extended !== undefined,
      extensions: [...OWN_EXTENSIONS, ...profile.extensions],
    },
    defaultInputModes: profile.inputModes,
    defaultOutputModes: profile.outputModes,
    skills: profile.skills,
    ...(profile.iconUrl === undefined ? undefined : { iconUrl: profile.iconUrl }),
  };
}

/** The card for callers who have shown who they are. */
export function toExtendedCard(card: AgentCard, extended: NonNullable<AgentProfile["extended"]>): AgentCard {
  return {
    ...card,
    description: extended.description ?? card.description,
    skills: [...card.skills, ...(extended.skills ?? [])],
  };
}

/** Of the requested extensions, those this agent honours, in the order asked for. */
export function activatedOf(card: AgentCard, requested: readonly string[]): readonly string[] {
  if (requested.length === 0) return requested;
  const offered = new Set(card.capabilities.extensions?.map(({ uri }) => uri));
  return requested.filter((uri) => offered.has(uri));
}
