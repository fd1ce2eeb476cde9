/** Reads the cards of agents that others name: fetched with care, decoded, validated, their signatures verified. */

import { GuardedFetchError } from "../../core/auth/guarded-fetch/errors.ts";
import type { CardVerification } from "../../core/auth/signatures/verify-card.ts";
import { locateCard } from "../../core/client/card/addresses.ts";
import { describeVerification, readVerifiedCard, verifyCardSignatures } from "../../core/client/card/verify-card.ts";
import { connect } from "../../core/client/connect.ts";
import { readCard } from "../../core/client/dialects.ts";
import { ConnectionError } from "../../core/client/errors.ts";
import type { CardOptions, SignaturePolicy } from "../../core/client/options.ts";
import type { AgentCard } from "../../core/model/card.ts";
import { invalidParams, ProtocolError } from "../../core/model/errors.ts";
import { isObject, type JsonObject } from "../../core/model/json.ts";
import { canParseUrl } from "../../core/model/url.ts";
import { JsonParseError, parseJson } from "../../core/wire/parse-json.ts";
import { NotShown } from "../conformance/check.ts";
import { CARD_CHECKS } from "../conformance/checks/card.ts";
import type { CardFinding, SignatureVerdict } from "./entry.ts";

export interface TrustOptions extends Pick<CardOptions, "cardKeys" | "jkuOrigins"> {
  /** Default: `prefer`, which refuses what is known to be forged. */
  readonly signatures?: SignaturePolicy;
}

export interface CardSourceOptions {
  /** Calls only targets that are allowed. */
  readonly fetch: typeof globalThis.fetch;
  readonly trust: TrustOptions;
}

/** A card that can be registered. */
export interface ReadCard {
  readonly card: AgentCard;
  readonly document: JsonObject;
  /** The document as it was sent or fetched. */
  readonly text: string;
  readonly signature: SignatureVerdict;
  readonly findings: readonly CardFinding[];
}

export interface FetchedCard extends ReadCard {
  readonly url: string;
  readonly etag?: string;
}

/** Longer cards are refused. */
export const MAX_CARD_BYTES = 256 * 1024;
const MAX_CARD_VALUES = 20_000;
const MAX_NAME_LENGTH = 200;
const TIMEOUT_MS = 10_000;

export type CardSource = ReturnType<typeof createCardSource>;

/** All functions throw a ProtocolError that says why a card is refused or cannot be read. */
export function createCardSource({ fetch, trust }: CardSourceOptions) {
  /** The card at a URL, or below it; `unchanged` if it is the one with this ETag. */
  async function fetchCard(target: string, etag?: string): Promise<FetchedCard | "unchanged"> {
    let missing: ProtocolError | undefined;
    for (const url of cardUrls(target)) {
      const found = await fetchAt(url, etag);
      if (!ProtocolError.is(found)) return found;
      missing ??= found;
    }
    throw missing ?? invalidParams("url", "names no card");
  }

  /** Returns an error if there is no card at this URL, so that the next one can be tried. */
  async function fetchAt(url: string, etag: string | undefined): Promise<FetchedCard | "unchanged" | ProtocolError> {
    const own: Record<string, string> = etag === undefined ? {} : { "if-none-match": etag };
    const headers = { accept: "application/json", "a2a-version": "1.0", ...own };
    let status: number;
    let text: string;
    let tag: string | null;
    try {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
      status = response.status;
      tag = response.headers.get("etag");
      if (status === 304 && etag !== undefined) return "unchanged";
      text = await response.text();
    } catch (error) {
      throw invalidParams("url", `the card could not be fetched: ${describeFailure(error)}`);
    }
    if (status !== 200) return invalidParams("url", `the card was answered with HTTP ${status}`);
    try {
      return { ...(await read(text, url, "url")), url, etag: tag ?? undefined };
    } catch (error) {
      // Some servers answer every URL with the same page.
      if (ProtocolError.is(error)) return error;
      throw error;
    }
  }

  async function read(text: string, url: string | undefined, field: string): Promise<ReadCard> {
    if (Buffer.byteLength(text) > MAX_CARD_BYTES) {
      throw invalidParams(field, `the card is larger than ${MAX_CARD_BYTES / 1024} KiB`);
    }
    const document = parseDocument(text, field);
    // Readers replace such a name, each by another one; one of invisible characters cannot be told from it.
    if (typeof document.name !== "string" || !/[\p{L}\p{N}\p{P}\p{S}]/u.test(document.name)) {
      const isCard = "name" in document || readCard(document, url) !== undefined;
      throw invalidParams(
        field,
        isCard
          ? "the card needs a name that is a string and not empty"
          : "is not an agent card: it has neither a name nor interfaces",
      );
    }
    if (!isWellFormed(document)) throw invalidParams(field, "the card has text that is not valid Unicode");
    const found = readCard(document, url);
    if (found === undefined) throw invalidParams(field, "the card has no interface to be called at");
    checkCard(found, field);
    const verification = trust.signatures === "ignore" ? undefined : await verify(text, document, url);
    const signature = toVerdict(verification);
    const { status } = verification ?? {};
    if (status === "invalid" || (trust.signatures === "require" && status !== "verified")) {
      const reason = verification === undefined ? "" : describeVerification(verification);
      throw invalidParams(field, `the card is refused. ${reason}`);
    }
    // Members outside of what was signed could come from anyone.
    const card = readVerifiedCard(found, verification, (signed) => readCard(signed, url) ?? found);
    return { card, document, text, signature, findings: await findProblems(document, text) };
  }

  /** Without a look at the text of an inline card that is not signed: it was written here, so that no member is in it twice. */
  async function verify(text: string, { signatures }: JsonObject, url: string | undefined): Promise<CardVerification> {
    if (url === undefined && signatures === undefined) return { status: "absent" };
    return verifyCardSignatures(text, trust);
  }

  return {
    /** Where the card of a target may be; throws for what is not an http URL. */
    candidates: cardUrls,
    fetch: fetchCard,
    /** A card that was sent instead of its URL. */
    readInline: (document: JsonObject) => read(JSON.stringify(document), undefined, "card"),
    /** Whether the agent answers: asks for a task that does not exist, which changes nothing there. */
    async probe(card: AgentCard): Promise<void> {
      const interfaces = card.supportedInterfaces.filter(({ url }) => /^https?:/i.test(url));
      if (interfaces.length === 0) throw invalidParams("probe", "the agent has no interface over HTTP to be probed");
      const retry = { attempts: 1, baseMs: 1, capMs: 1 };
      try {
        const agent = await connect(
          { ...card, supportedInterfaces: interfaces },
          { fetch, retry, timeoutMs: TIMEOUT_MS },
        );
        await agent.get(PROBED_TASK);
      } catch (error) {
        // Any answer of the protocol shows that the agent is there; it may well ask for credentials.
        if (ProtocolError.is(error) && error.code !== "UNAVAILABLE" && error.code !== "INVALID_AGENT_RESPONSE") return;
        throw invalidParams("probe", `the agent did not answer: ${describeFailure(error)}`);
      }
    },
  };
}

const PROBED_TASK = "00000000-0000-4000-8000-000000000000";

function cardUrls(target: string): readonly string[] {
  if (!/^https?:\/\//i.test(target) || !canParseUrl(target)) {
    throw invalidParams("url", "must be an http or https URL of an agent or of its card");
  }
  const place = locateCard(target);
  return place.kind === "web" ? place.urls : [];
}

function parseDocument(text: string, field: string): JsonObject {
  try {
    const value = parseJson(text, { maxValues: MAX_CARD_VALUES });
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonParseError)) throw error;
    throw invalidParams(field, `the card cannot be read: ${error.message}`);
  }
  throw invalidParams(field, "the card is not a JSON object");
}

/** Lone surrogates cannot be encoded as UTF-8, so that other tools may fail to read a catalog with them. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  return !isObject(value) || Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member));
}

/** Whatever else is wrong with a card is a finding: others may be able to use it. */
function checkCard({ name, supportedInterfaces }: AgentCard, field: string): void {
  if (name.length > MAX_NAME_LENGTH) {
    throw invalidParams(field, `the card needs a name of at most ${MAX_NAME_LENGTH} characters`);
  }
  if (/\p{Cc}/u.test(name)) throw invalidParams(field, "the name of the card has control characters");
  if (supportedInterfaces.length === 0) throw invalidParams(field, "the card has no interface to be called at");
  for (const { url } of supportedInterfaces) {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
    const isHostAndPort = /^(?:\[[0-9a-f:.]+\]|[^\s/:?#@]+):\d{1,5}(?:\/|$)/i.test(url);
    const isUrl = scheme !== undefined && SCHEMES.has(scheme) && canParseUrl(url);
    if (!isUrl && !isHostAndPort) throw invalidParams(field, "the card has an interface that is not at an http URL");
  }
}

const SCHEMES: ReadonlySet<string> = new Set(["http", "https", "ws", "wss", "grpc", "grpcs"]);

/** Checks of a card that need nothing but the card. */
const CHECKS = CARD_CHECKS.filter(({ name }) => !/^card-(?:fetched|cache-control|etag|last-modified)$/.test(name));

async function findProblems(document: JsonObject, text: string): Promise<readonly CardFinding[]> {
  const version = Array.isArray(document.supportedInterfaces) ? "1.0" : "0.3";
  const context = { version, text, fetch: () => Promise.reject(new NotShown("the card is examined alone")) } as const;
  const findings: CardFinding[] = [];
  for (const { name, shows, run } of CHECKS) {
    // What a security scheme looks like is different in older versions.
    if (version === "0.3" && name === "card-proto-json") continue;
    if (document.signatures === undefined && name === "card-signature-header") continue;
    try {
      await run(context);
    } catch (error) {
      if (error instanceof NotShown) continue;
      const message = error instanceof Error ? error.message.slice(0, MAX_FINDING_LENGTH) : String(error);
      findings.push({ check: name, requirement: shows[0] ?? "", message });
    }
  }
  return findings;
}

const MAX_FINDING_LENGTH = 500;

function toVerdict(verification: CardVerification | undefined): SignatureVerdict {
  if (verification === undefined) return { status: "unchecked" };
  const { status } = verification;
  if (status === "verified") return { status, kid: verification.kid, alg: verification.alg };
  return status === "absent" ? { status } : { status: "unverifiable", reason: verification.reason };
}

/** Never what is inside the network: the reason is shown to whoever named the target. */
function describeFailure(error: unknown): string {
  if (error instanceof GuardedFetchError) return error.message;
  if (error instanceof Error && error.cause instanceof GuardedFetchError) return error.cause.message;
  if (error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")) {
    return "The target did not answer in time.";
  }
  if (ConnectionError.is(error) || ProtocolError.is(error)) return error.message;
  return "The target could not be reached.";
}
