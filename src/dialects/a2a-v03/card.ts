/** The card as the documents that readers of 0.3 and 0.2 look for. */
import type { AgentCard, AgentInterface, AgentSkill } from "../../model/card.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { type Loss, type Lossy, lossBy } from "../../model/loss.ts";
import type { AgentPlace } from "../contract.ts";
import { toEarlyModes } from "../shared/early-modes.ts";
import { LOSSES } from "./losses.ts";
import { defined, type Lose, toWireSchemes, toWireSecurity } from "./security.ts";
import { VERSION } from "./service-parameters.ts";

const VERSION_OF_DOCUMENT = "0.3.0";
const VERSION_OF_EARLIER_DOCUMENT = "0.2.6";

/** gRPC of 0.3 has no place for an agent's name, so that only the default agent is offered there. */
export function interfaces({ base, rpc, isDefault }: AgentPlace): readonly AgentInterface[] {
  const overHttp: readonly AgentInterface[] = [
    { url: base, protocolBinding: "JSONRPC", protocolVersion: VERSION },
    { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: VERSION },
  ];
  if (rpc === undefined || !isDefault) return overHttp;
  return [...overHttp, { url: rpc, protocolBinding: "GRPC", protocolVersion: VERSION }];
}

/** For `agent-card.json`. What it cannot say is listed in `losses.ts`. */
export function toCardDocument(card: AgentCard): JsonObject {
  return toWireCard(card).value;
}

/**
 * For `agent.json`. Its skills name what they take and give in media types, and in the plain words that readers from
 * before 0.2 expect.
 */
export function toEarlierCardDocument(card: AgentCard): JsonObject {
  const { defaultInputModes, defaultOutputModes } = card;
  const skills = card.skills.map((skill) => ({
    ...skill,
    inputModes: toEarlyModes(skill.inputModes ?? defaultInputModes),
    outputModes: toEarlyModes(skill.outputModes ?? defaultOutputModes),
  }));
  return { ...toWireCard({ ...card, skills }).value, protocolVersion: VERSION_OF_EARLIER_DOCUMENT };
}

export function toWireCard(card: AgentCard): Lossy<JsonObject> {
  const losses: Loss[] = [];
  const lose: Lose = (rule, path) => losses.push(lossBy(rule, path));
  if (card.signatures !== undefined) lose(LOSSES.signaturesSaid, "card.signatures");
  const offered = offeredInterfaces(card, lose);
  const [preferred = card.supportedInterfaces[0]] = offered;
  const { streaming, pushNotifications, extensions, extendedAgentCard } = card.capabilities;
  const value = defined({
    protocolVersion: VERSION_OF_DOCUMENT,
    name: card.name,
    description: card.description,
    url: preferred?.url ?? "",
    preferredTransport: preferred?.protocolBinding ?? "JSONRPC",
    additionalInterfaces: offered.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    provider: card.provider && { organization: card.provider.organization, url: card.provider.url },
    version: card.version,
    documentationUrl: card.documentationUrl,
    iconUrl: card.iconUrl,
    capabilities: defined({ streaming, pushNotifications, extensions: asJson(extensions) }),
    securitySchemes: toWireSchemes(card.securitySchemes, lose),
    security: toWireSecurity(card.securityRequirements),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(toWireSkill),
    supportsAuthenticatedExtendedCard: extendedAgentCard,
  });
  return { value, losses };
}

/** Those of other versions are for readers of other documents. */
function offeredInterfaces({ supportedInterfaces }: AgentCard, lose: Lose): readonly AgentInterface[] {
  return supportedInterfaces.filter(({ protocolVersion, tenant }, at) => {
    const isOurs = protocolVersion === VERSION || protocolVersion.startsWith(`${VERSION}.`);
    if (isOurs && tenant !== undefined) lose(LOSSES.interfaceTenant, `card.supportedInterfaces[${at}].tenant`);
    return isOurs;
  });
}

function toWireSkill(skill: AgentSkill): JsonObject {
  const { id, name, description, tags, examples, inputModes, outputModes, securityRequirements } = skill;
  const security = toWireSecurity(securityRequirements);
  return defined({ id, name, description, tags, examples, inputModes, outputModes, security });
}

/** Extensions are spelled the same in both. */
function asJson(extensions: AgentCard["capabilities"]["extensions"]): JsonValue | undefined {
  return extensions?.map(({ uri, description, required, params }) => defined({ uri, description, required, params }));
}
