import type { Caller } from "../../model/caller.ts";
import type { AgentProfile, ProfileSkill } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { SendInput } from "../../model/operation.ts";

/**
 * Throws or rejects unless the caller has the scopes of the skill that its message requests by id. Asynchronous only if
 * the agent has to return the skills of this caller.
 */
export function requireScopes(
  profile: AgentProfile,
  { message, metadata }: SendInput,
  caller: Caller,
): Promise<void> | undefined {
  const { extended } = profile;
  const hidden: string[] = [];
  for (const id of [...requestedSkills(message.metadata), ...requestedSkills(metadata)]) {
    const isMeant = (skill: ProfileSkill) => skill.id === id;
    const shown = typeof extended === "function" ? undefined : extended?.skills?.find(isMeant);
    const skill = profile.skills.find(isMeant) ?? shown;
    if (skill !== undefined) requireScopesOf(skill, caller);
    else hidden.push(id);
  }
  return typeof extended === "function" && hidden.length > 0
    ? requireVisibleSkills(extended, hidden, caller)
    : undefined;
}

/**
 * Checks skills of a card that depends on the caller. A skill that is not in the caller's card is denied: its scopes
 * are unknown.
 */
async function requireVisibleSkills(
  extended: Extract<AgentProfile["extended"], (caller: Caller) => unknown>,
  ids: readonly string[],
  caller: Caller,
): Promise<void> {
  const shown = caller.authenticated ? await extended(caller) : undefined;
  for (const id of ids)
    requireScopesOf(shown?.skills?.find((skill) => skill.id === id) ?? denyHiddenSkill(id, caller), caller);
}

function denyHiddenSkill(id: string, { authenticated }: Caller): never {
  if (!authenticated) throw unauthenticatedError(id);
  throw new ProtocolError("PERMISSION_DENIED", `There is no skill "${id}" for you.`, { metadata: { skill: id } });
}

function unauthenticatedError(id: string): ProtocolError {
  return new ProtocolError("UNAUTHENTICATED", `The skill "${id}" is for callers who are known.`);
}

function requestedSkills(metadata: JsonObject | undefined): readonly string[] {
  if (metadata === undefined) return [];
  return [metadata.skill, metadata.skillId].filter((id) => typeof id === "string");
}

function requireScopesOf(skill: ProfileSkill, caller: Caller): void {
  const alternatives = scopeAlternatives(skill);
  const granted = new Set(caller.scopes);
  const isMet = (scopes: readonly string[]) => caller.authenticated && scopes.every((scope) => granted.has(scope));
  if (alternatives.length === 0 || alternatives.some(isMet)) return;
  if (!caller.authenticated) throw unauthenticatedError(skill.id);
  const scopes = (alternatives[0] ?? []).join(" ");
  throw new ProtocolError("PERMISSION_DENIED", `The skill "${skill.id}" needs scopes that were not granted.`, {
    metadata: { skill: skill.id, scopes },
  });
}

/** Alternative sets of scopes; the caller needs every scope of one of them. */
function scopeAlternatives({ scopes = [], securityRequirements = [] }: ProfileSkill): readonly (readonly string[])[] {
  // A requirement without schemes is met by every caller.
  if (scopes.length === 0 && securityRequirements.some(({ schemes }) => Object.keys(schemes).length === 0)) return [];
  const declared = securityRequirements.map(({ schemes }) => Object.values(schemes).flatMap(({ list }) => list));
  if (scopes.length === 0) return declared;
  return declared.length === 0 ? [scopes] : declared.map((list) => [...list, ...scopes]);
}
