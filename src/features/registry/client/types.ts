import type { CallOptions, CardOptions } from "../../../core/client/options.ts";
import type { RegistryReference } from "../../../core/client/reference.ts";
import type { AgentCard } from "../../../core/model/card.ts";
import type { JsonObject } from "../../../core/model/json.ts";

/** An agent in a registry: an entry of an AI Catalog with the id that it has in the registry. */
export interface RegistryEntry {
  /** In this registry. Absent in registries that have no ids of their own; use `identifier`. */
  readonly id?: string;
  /** `urn:air:…`, the same in every registry. */
  readonly identifier: string;
  readonly displayName: string;
  /** Media type of what `url` or `data` is; agents have `application/a2a-agent-card+json`. */
  readonly type: string;
  /** URL of the card … */
  readonly url?: string;
  /** … or the card itself. */
  readonly data?: JsonObject;
  readonly description?: string;
  readonly tags?: readonly string[];
  /** Ids of skills. */
  readonly capabilities?: readonly string[];
  readonly representativeQueries?: readonly string[];
  readonly version?: string;
  readonly updatedAt?: string;
  /** What the registry knows besides, such as `health`, `source`, `signature`, `heldBack`, and the `hosts` of the agent. */
  readonly metadata?: JsonObject;
}

export interface RegistryDetails extends RegistryEntry {
  /** When it was registered and checked, what is wrong with its card, until when it stays. */
  readonly registration?: JsonObject;
  /** In the format of A2A 1.0. */
  readonly card?: AgentCard;
}

export interface RegistryResult extends RegistryEntry {
  /** How well it matches, from 0 to 100. */
  readonly score: number;
  /** The registry that has the entry. */
  readonly source: string;
}

/** By field: `skill`, `tag`, `dialect`, `binding`, `mode`, `health`, `publisher`, `type`, `displayName`; of a list, one has to fit. */
export type RegistryFilter = Readonly<Record<string, string | readonly string[]>>;

export interface RegistrySearch {
  readonly text: string;
  readonly filter?: RegistryFilter;
  /** `auto` also asks the peers of the registry, `referrals` names them, `none` does neither. Default: `auto`. */
  readonly federation?: "auto" | "referrals" | "none";
  readonly pageSize?: number;
  readonly pageToken?: string;
}

export interface RegistrySearchPage {
  readonly results: readonly RegistryResult[];
  readonly pageToken?: string;
  readonly referrals?: readonly JsonObject[];
  /** Peers of the registry that did not answer. */
  readonly unanswered?: readonly { readonly url: string; readonly reason: string }[];
}

export interface RegistryListing {
  readonly filter?: RegistryFilter;
  /** `displayName`, `createdAt` or `updatedAt`, and ` DESC` for the reverse. */
  readonly orderBy?: string;
  readonly pageSize?: number;
  readonly pageToken?: string;
}

export interface RegistryPage {
  readonly items: readonly RegistryEntry[];
  readonly total?: number;
  readonly pageToken?: string;
}

/** The agent by the URL of its card or its base URL, or by its card. */
export type RegistrationInput = ({ readonly url: string } | { readonly card: AgentCard }) & {
  /** Without a heartbeat within this time the agent becomes stale, and later it is removed. Default: it stays. */
  readonly ttlSeconds?: number;
  /** Who can find it. Default: as the registry decides. */
  readonly visibility?: "private" | "public";
  /** Whether the registry also sends it messages to see whether it answers. */
  readonly probe?: boolean;
};

export interface RegistryEvent {
  /** `reset`: events were missed that the registry no longer has; list the agents again. */
  readonly kind: "registered" | "updated" | "stale" | "removed" | "reset";
  /** Of the agent; absent with `reset`. */
  readonly id?: string;
  /** To continue after it, as `after`. */
  readonly number: string;
  readonly data: JsonObject;
}

export type RegistryOptions = Pick<
  CardOptions,
  "headers" | "credentials" | "tls" | "fetch" | "timeoutMs" | "retry" | "signal" | "onExchange"
>;

type RegistryCallOptions = Pick<CallOptions, "signal" | "timeoutMs">;

/** A registry of agents. Rejects with `RegistryError` for its errors, `ConnectionError` for connection failures. */
export interface RegistryClient {
  /** Best match first. A string is the text to search for. */
  search(query: string | RegistrySearch, options?: RegistryCallOptions): Promise<RegistrySearchPage>;
  /** All agents that fit the filter, fetched on demand. */
  list(query?: Omit<RegistryListing, "pageToken">, options?: RegistryCallOptions): AsyncIterable<RegistryEntry>;
  listPage(query?: RegistryListing, options?: RegistryCallOptions): Promise<RegistryPage>;
  get(id: string, options?: RegistryCallOptions): Promise<RegistryDetails>;
  /**
   * The agents that a name, id or skill may mean, in the order in which to try them. More than one for a name means that
   * it is ambiguous. Fails with UNAVAILABLE if the registry holds them back, as their cards became those of others.
   */
  find(reference: RegistryReference, options?: RegistryCallOptions): Promise<readonly RegistryEntry[]>;
  /** Registering the same card again keeps its id. */
  register(agent: RegistrationInput, options?: RegistryCallOptions): Promise<RegistryDetails>;
  /** Keeps an agent with a `ttlSeconds` registered. Fails with NOT_FOUND if it has to be registered again. */
  heartbeat(id: string, options?: RegistryCallOptions): Promise<{ readonly id: string; readonly expiresAt?: string }>;
  remove(id: string, options?: RegistryCallOptions): Promise<void>;
  /** What happens in the registry, from now on or after an earlier event. Reconnects, and continues where it was. */
  watch(options?: { readonly after?: string; readonly signal?: AbortSignal }): AsyncIterable<RegistryEvent>;
}

/** Errors that a registry returns, as ARD names them; INVALID_RESPONSE: its answer cannot be read. */
export const REGISTRY_ERROR_CODES = [
  "INVALID_ARGUMENT",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "NOT_FOUND",
  "RATE_LIMIT_EXCEEDED",
  "INTERNAL_ERROR",
  "UNAVAILABLE",
  "INVALID_RESPONSE",
] as const;

export type RegistryErrorCode = (typeof REGISTRY_ERROR_CODES)[number];

export class RegistryError extends Error {
  override readonly name = "RegistryError";
  readonly code: RegistryErrorCode;
  /** Seconds after which a repeat may succeed. */
  readonly retryAfter: number | undefined;

  constructor(code: RegistryErrorCode, message: string, retryAfter?: number) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}
