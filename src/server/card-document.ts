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
  readonly #now: () => number;
  readonly #documents = new WeakMap<AgentCard, Document>();

  constructor(serving: CardServing, now: () => number) {
    this.#serving = serving;
    this.#now = now;
  }

  reply(card: AgentCard, exchange: ExchangeRequest): FullReply {
    const { body, headers, etag } = this.#documentOf(card);
    if (isKnown(exchange, etag, headers["last-modified"])) return { status: 304, headers, body: undefined };
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
        "last-modified": new Date(this.#now()).toUTCString(),
        vary: "A2A-Version",
      };
      document = { body, headers, etag };
      this.#documents.set(card, document);
    }
    return document;
  }
}

/** The reader has this very document. Its tag decides if it sent one, as RFC 9110 §13.2.2 has it. */
function isKnown(exchange: ExchangeRequest, etag: string, lastModified: string | undefined): boolean {
  const tags = exchange.headers["if-none-match"];
  if (tags !== undefined) return matches(tags, etag);
  const since = Date.parse(exchange.headers["if-modified-since"] ?? "");
  return lastModified !== undefined && since >= Date.parse(lastModified);
}

/** Weak comparison, as RFC 9110 asks for If-None-Match. */
function matches(header: string, etag: string): boolean {
  return header.split(",").some((candidate) => {
    const tag = candidate.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}
