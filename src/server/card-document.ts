import { createHash } from "node:crypto";
import type { CardServing } from "../dialects/contract.ts";
import type { AgentCard } from "../model/card.ts";
import type { ExchangeRequest, FullReply } from "../wire/exchange.ts";

interface Document {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

const MAX_AGE_SECONDS = 60;

/** Cards as bytes with their ETag, made once for each card object. */
export class CardDocuments {
  readonly #serving: CardServing;
  readonly #documents = new WeakMap<AgentCard, Document>();

  constructor(serving: CardServing) {
    this.#serving = serving;
  }

  reply(card: AgentCard, exchange: ExchangeRequest): FullReply {
    const { body, headers, etag } = this.#documentOf(card);
    if (matches(exchange.headers["if-none-match"], etag)) return { status: 304, headers, body: undefined };
    return { status: 200, headers, body };
  }

  #documentOf(card: AgentCard): Document {
    let document = this.#documents.get(card);
    if (document === undefined) {
      const body = Buffer.from(this.#serving.encode(card));
      const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
      const headers = {
        "content-type": this.#serving.contentType,
        "cache-control": `public, max-age=${MAX_AGE_SECONDS}`,
        etag,
        vary: "A2A-Version",
      };
      document = { body, headers, etag };
      this.#documents.set(card, document);
    }
    return document;
  }
}

/** Weak comparison, as RFC 9110 asks for If-None-Match. */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((candidate) => {
    const tag = candidate.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}
