import type { Caller } from "../model/caller.ts";
import type { AgentCard, AgentInterface, AgentProfile } from "../model/card.ts";
import type { ProtocolError } from "../model/errors.ts";
import type { Loss, Lossy } from "../model/loss.ts";
import type { Call, Operation, OperationKind, OutcomeOf, Outcomes, StreamFrame } from "../model/operation.ts";
import type { Ids } from "../model/ports.ts";
import type { ExchangeCall, ExchangeReply, ExchangeRequest } from "../wire/exchange.ts";
import type { JsonRpcId, JsonRpcRequest } from "../wire/json-rpc.ts";
import type { Link } from "../wire/link.ts";

/**
 * A dialect is a pair of codecs over one model: one for serving, one for calling, each over one or more carriers.
 * Who dials is not its business: a link is served or called the same whichever side opened it.
 */
export interface Dialect {
  readonly name: string;
  readonly can: Abilities;
  readonly serving: Serving;
  readonly calling: readonly Calling[];
}

/** What a dialect can say at all. The core asks for these, never for a dialect's name. */
export interface Abilities {
  readonly streaming: boolean;
  /** Streams can be resumed from a number. */
  readonly replay: boolean;
  readonly operations: Readonly<Record<OperationKind, boolean>>;
  readonly parts: { readonly text: boolean; readonly raw: boolean; readonly url: boolean; readonly data: boolean };
  readonly artifacts: boolean;
  readonly inputRequired: boolean;
  readonly metadata: boolean;
}

/** One agent, as a dialect sees it. */
export interface AgentService {
  readonly name: string;
  readonly profile: AgentProfile;
  /** The public card. The same object while nothing changed, so that bytes made of it can be kept. */
  readonly card: AgentCard;
  /** Does what is asked or throws a ProtocolError; nothing else is ever thrown. */
  dispatch<O extends Operation>(operation: O, call: Call): Promise<OutcomeOf<O>>;
  /** Those of the requested extensions that take effect. */
  activate(requested: readonly string[]): readonly string[];
}

/** What a codec needs beside the words: somewhere to say what it could not say, and ids for what comes without. */
export interface CodecTools {
  /** Throws LOSS_REFUSED where nothing may be lost. */
  readonly report: (losses: readonly Loss[]) => void;
  readonly ids: Pick<Ids, "message" | "context">;
}

export interface ServeContext extends CodecTools {
  readonly service: AgentService;
  readonly caller: Caller;
  readonly limits: ServeLimits;
  /** The agent a tenant of the request stands for, where tenants name agents. */
  readonly agentOfTenant: (tenant: string) => AgentService | undefined;
}

export interface ServeLimits {
  readonly maxDepth: number;
  readonly maxParts: number;
  readonly keepAliveMs: number;
}

export interface Serving {
  readonly card?: CardServing;
  /** Entries for a card's list of interfaces, for an agent whose base URL is `base`. */
  interfaces?(base: string): readonly AgentInterface[];
  readonly jsonRpc?: JsonRpcServing;
  readonly http?: HttpServing;
  readonly link?: LinkServing;
}

/** A document that says who the agent is, at a path of its own below the agent's base. */
export interface CardServing {
  readonly path: string;
  readonly contentType: string;
  encode(card: AgentCard): string;
}

/** Several dialects share one URL: told apart by the version the caller names and the method. */
export interface JsonRpcServing {
  /** `Major.Minor` of what this dialect speaks. */
  readonly version: string;
  readonly methods: ReadonlySet<string>;
  handle(request: JsonRpcRequest, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
  /** An error in the dialect's own words, for what goes wrong before a method is known. */
  refuse(error: ProtocolError, id: JsonRpcId): ExchangeReply;
}

/** Paths of its own below an agent's base, e.g. everything under `/rest`. */
export interface HttpServing {
  readonly version: string;
  /** First path segment this binding answers. */
  readonly prefix: string;
  /** `exchange.path` is what follows the prefix. */
  handle(exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
  refuse(error: ProtocolError, exchange: ExchangeRequest): ExchangeReply;
}

/** A conversation over a link; ends when the link closes. */
export interface LinkServing {
  serve(link: Link, context: ServeContext): Promise<void>;
}

export type Calling = ExchangeCalling | LinkCalling;

/** Where and as whom an agent is called. */
export interface CallTarget {
  readonly url: string;
  readonly tenant: string | undefined;
  /** Credentials and the like, added to every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly extensions: readonly string[];
  readonly idempotencyKey?: string;
}

/** An answer read to its end. */
export interface WholeAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Pure in both directions: the client owns sockets, time and retries. */
export interface ExchangeCalling {
  readonly carrier: "exchange";
  /** The name in a card, e.g. `JSONRPC`. */
  readonly binding: string;
  readonly version: string;
  encode(operation: Operation, target: CallTarget): Lossy<ExchangeCall>;
  /** The same call in the other form some peers want it in, for when they do not know this one. */
  alternative?(call: ExchangeCall): ExchangeCall | undefined;
  /** Throws the peer's error as a ProtocolError, and INVALID_AGENT_RESPONSE for what it cannot read. */
  decode<K extends Exclude<OperationKind, "stream" | "subscribe">>(kind: K, answer: WholeAnswer): Lossy<Outcomes[K]>;
  /** One frame of a stream. Throws like `decode`. */
  decodeFrame(frame: {
    readonly data: string;
    readonly event: string;
    readonly id: string | undefined;
  }): Lossy<StreamFrame>;
}

/** Calling a peer over a link: operations go out, their outcomes come back, many at a time. */
export interface LinkCalling {
  readonly carrier: "link";
  open(link: Link, tools: CodecTools): LinkCaller;
}

export interface LinkCaller {
  dispatch<O extends Operation>(operation: O, signal: AbortSignal): Promise<OutcomeOf<O>>;
}
