import { type Fields, fieldsOf, listOf, textOf } from "./json.ts";
import type { Version } from "./requirement.ts";
import type { Declared } from "./scene.ts";

/** What a card of that version says the agent can do. */
export function declaredBy(card: Fields, version: Version): Declared {
  const capabilities = fieldsOf(card.capabilities);
  const extensions = listOf(capabilities.extensions).map(fieldsOf);
  const urisWhere = (required: boolean) =>
    extensions.filter((one) => (one.required === true) === required).flatMap(({ uri }) => textOf(uri) ?? []);
  const requirements = version === "1.0" ? card.securityRequirements : (card.security ?? card.securityRequirements);
  return {
    streaming: capabilities.streaming === true,
    push: capabilities.pushNotifications === true,
    extendedCard:
      version === "1.0" ? capabilities.extendedAgentCard === true : card.supportsAuthenticatedExtendedCard === true,
    inputModes: listOf(card.defaultInputModes).flatMap((mode) => textOf(mode) ?? []),
    requiredExtensions: urisWhere(true),
    optionalExtensions: urisWhere(false),
    authenticated: asksForCredentials(listOf(requirements).map(fieldsOf), version),
  };
}

/** One alternative that asks for nothing lets everyone in. */
function asksForCredentials(requirements: readonly Fields[], version: Version): boolean {
  if (requirements.length === 0) return false;
  const schemesOf = (one: Fields) => (version === "1.0" ? fieldsOf(one.schemes) : one);
  return requirements.every((one) => Object.keys(schemesOf(one)).length > 0);
}
