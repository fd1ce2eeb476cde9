import type { AgentCard, AgentInterface } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import type { AgentPlace } from "../contract.ts";
import { HTTP_PREFIX } from "./http-routes.ts";
import { writeWire } from "./schema.ts";
import { VERSION } from "./service-parameters.ts";

const documents = new WeakMap<AgentCard, JsonObject>();
const texts = new WeakMap<AgentCard, string>();

/** The card by the presence rules that signing relies on (§8.4.1). Made once for each card object. */
export function toCardDocument(card: AgentCard): JsonObject {
  let document = documents.get(card);
  if (document === undefined) {
    document = writeWire("AgentCard", card) as JsonObject;
    documents.set(card, document);
  }
  return document;
}

/** The same as JSON. */
export function toWireCard(card: AgentCard): string {
  let text = texts.get(card);
  if (text === undefined) {
    text = JSON.stringify(toCardDocument(card));
    texts.set(card, text);
  }
  return text;
}

/** On the endpoint that all agents share, the tenant tells them apart; the default agent needs none. */
export function interfaces({ base, rpc, name, isDefault }: AgentPlace): readonly AgentInterface[] {
  const overHttp: readonly AgentInterface[] = [
    { url: base, protocolBinding: "JSONRPC", protocolVersion: VERSION },
    { url: `${base}/${HTTP_PREFIX}`, protocolBinding: "HTTP+JSON", protocolVersion: VERSION },
  ];
  if (rpc === undefined) return overHttp;
  const grpc = { url: rpc, protocolBinding: "GRPC", protocolVersion: VERSION };
  return [...overHttp, isDefault ? grpc : { ...grpc, tenant: name }];
}
