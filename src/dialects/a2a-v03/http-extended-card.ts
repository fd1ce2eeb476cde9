/** Where 0.2 has the card for callers who have shown who they are: a document of its own, with HTTP's own errors. */
import { ProtocolError } from "../../model/errors.ts";
import { type ExchangeReply, jsonReply } from "../../wire/exchange.ts";
import type { HttpServing } from "../contract.ts";
import { errorHeaders } from "../shared/error-headers.ts";
import { presentable } from "../shared/presentable.ts";
import { toEarlierCardDocument, toWireCard } from "./card.ts";
import { ERRORS, toErrorObject } from "./errors.ts";
import { invoke } from "./invoke.ts";

export const httpExtendedCard: HttpServing = {
  version: "0.2",
  prefix: "agent/authenticatedExtendedCard",

  async handle(exchange, context) {
    try {
      if (exchange.path !== "" && exchange.path !== "/") {
        throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path.");
      }
      if (exchange.method !== "GET" && exchange.method !== "HEAD") return METHOD_NOT_ALLOWED;
      const { outcome, headers } = await invoke({ kind: "extended-card" }, exchange.headers, context);
      const { losses } = toWireCard(outcome);
      if (losses.length > 0) context.report(losses);
      return jsonReply(200, JSON.stringify(toEarlierCardDocument(outcome)), headers);
    } catch (error) {
      return refuse(presentable(error));
    }
  },

  refuse: (error) => refuse(presentable(error)),
};

const METHOD_NOT_ALLOWED: ExchangeReply = { status: 405, headers: { allow: "GET, HEAD" }, body: undefined };

/** An agent without such a card has nothing here. */
function refuse(error: ProtocolError): ExchangeReply {
  const status = error.code === "UNSUPPORTED_OPERATION" ? 404 : ERRORS[error.code].http;
  return jsonReply(status, toErrorObject(error), errorHeaders(error));
}
