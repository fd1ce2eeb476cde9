import type { CardReader } from "../contract.ts";
import { type EarlyCardOptions, readEarlyCard } from "../shared/early-card-reading.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { VERSION } from "./version.ts";

const OPTIONS: EarlyCardOptions = {
  interfaceAt: (url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: VERSION }),
  impliedModes: ["text/plain"],
};

/** Never certain: nothing in a card of 0.1 is not in some other card, too. Whether it is one is seen by calling. */
export const readCard: CardReader = (value, cardUrl) => {
  const card = readEarlyCard(value, cardUrl, OPTIONS);
  return card === undefined ? undefined : { card, confidence: bearsMark(value) ? "likely" : "possible" };
};

/** Later versions say how to log in by other members, and which version they are. */
function bearsMark(value: unknown): boolean {
  return isRecord(value) && isRecord(value.authentication) && value.protocolVersion === undefined;
}
