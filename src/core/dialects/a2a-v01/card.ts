import { isObject } from "../../model/json.ts";
import { legacyCardDocument, legacyCardReader } from "../shared/legacy/card.ts";

export const VERSION = "0.1";

export const CARD_PATH = "/.well-known/agent.json";

/** Later versions declare authentication in other members, and name their version. */
export const readCard = legacyCardReader({
  interfaceAt: (url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: VERSION }),
  impliedModes: ["text/plain"],
  isLikely: (card) => isObject(card.authentication) && card.protocolVersion === undefined,
});

export const toCardDocument = legacyCardDocument((legacy, card) => {
  const { authentication, capabilities, description, name, skills, url, version } = legacy;
  const { defaultInputModes, defaultOutputModes, documentationUrl, provider } = card;
  return {
    name,
    description,
    url,
    provider: provider === undefined ? undefined : { organization: provider.organization, url: provider.url },
    version,
    documentationUrl,
    capabilities,
    authentication,
    defaultInputModes,
    defaultOutputModes,
    skills,
  };
});
