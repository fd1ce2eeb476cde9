import type { Caller } from "../model/caller.ts";
import type { AgentCard, AgentInterface, AgentProfile } from "../model/card.ts";
import type { ProtocolError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Loss, LossRule, Lossy } from "../model/loss.ts";
import type { Dispatcher, Operation, OperationKind, Outcomes, StreamFrame } from "../model/operation.ts";
import type { Clock, IdGenerator, Log, Meter } from "../model/ports.ts";
import type { Task } from "../model/task.ts";
import type { Closure } from "../wire/connection.ts";
import type { ExchangeCall, ExchangeReply, ExchangeRequest, RequestHead } from "../wire/exchange.ts";
import type { JsonRpcId, JsonRpcRequest } from "../wire/json-rpc.ts";
import type { Link } from "../wire/link.ts";
import type { RpcCall, RpcReply, RpcRequest, RpcStatus } from "../wire/rpc.ts";
import type { Carrier, CarrierHost, PeerCaller } from "./carrier.ts";

/**
 * A dialect is a pair of codecs over one model: one for serving, one for calling. Those that hold state or need time are
 * made by a function of `DialectTools` and settings of their own.
 */
export interface Dialect extends CallableDialect {
  readonly serving: Serving;
}

/** All that a client needs of a dialect. */
export interface CallableDialect {
  readonly name: string;
  readonly can: Abilities;
  /** Everything its codecs ever report as lost. */
  readonly losses: readonly LossRule[];
  readonly calling: readonly Calling[];
  /** Absent: cards are not published in this dialect. */
  readonly readCard?: CardReader;
  /** Where cards are not published: all that is known of an agent by its address. */
  readonly cardOf?: (url: string) => AgentCard;
}

/** The ports of the server that a dialect is made for. */
export interface DialectTools {
  readonly clock: Clock;
  readonly ids: IdGenerator;
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  readonly log: Log;
  readonly meter: Meter;
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
export interface AgentService extends Dispatcher {
  readonly name: string;
  readonly profile: AgentProfile;
  /** The public card. The same object while nothing changed, so that bytes made of it can be kept. */
  readonly card: AgentCard;
  /** Those of the requested extensions that take effect. */
  activate(requested: readonly string[]): readonly string[];
  /** The dialect a task was made over, for one who may see the task. */
  originOf(taskId: string, caller: Caller): Promise<string | undefined>;
}

/** What a codec needs beside the words: somewhere to say what it could not say, and ids for what comes without. */
export interface CodecTools {
  /** Throws LOSS_REFUSED where nothing may be lost. */
  readonly report: (losses: readonly Loss[]) => void;
  readonly ids: Pick<IdGenerator, "message" | "context">;
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
  readonly maxValues: number;
  readonly maxParts: number;
  readonly keepAliveMs: number;
}

interface Serving {
  /** Documents that say who the agent is. */
  readonly cards?: readonly CardServing[];
  /** Entries for a card's list of interfaces. */
  interfaces?(place: AgentEndpoint): readonly AgentInterface[];
  readonly jsonRpc?: JsonRpcServing;
  readonly http?: readonly HttpServing[];
  readonly rpc?: RpcServing;
  /** Called once, when the engine runs. Throws a TypeError for settings that make no sense. */
  carriers?(host: CarrierHost): Promise<readonly Carrier[]>;
  /** Called when the engine has closed: nothing will be asked any more. */
  close?(): Promise<void>;
  /** How those who registered a webhook in this dialect are told of events; absent: nobody can register one. */
  readonly push?: PushEncoding;
}

export interface PushBody {
  readonly contentType: string;
  readonly body: string;
}

export interface PushEncoding {
  /** Every body shows the whole task, so that chunks which another event has already passed need not be told. */
  readonly wholeTask: boolean;
  /** One event; `task` is the task as it stood then. */
  encode(frame: StreamFrame, task: () => Promise<Task>, report: CodecTools["report"]): Promise<PushBody>;
}

/** Where an agent is served. */
export interface AgentEndpoint {
  /** Base URL, without a slash at the end. */
  readonly base: string;
  /** `host:port` of the gRPC endpoint that all agents share, if there is one. */
  readonly rpc: string | undefined;
  readonly name: string;
  /** Answers where a request names no agent. */
  readonly isDefault: boolean;
}

/**
 * A document at a path below the agent's base. Dialects may share a path: a caller who names a version gets that one's
 * document, all others get them merged into one that readers of each understand.
 */
export interface CardServing {
  readonly path: string;
  /** `Major.Minor`. */
  readonly version: string;
  /** Members of the document, made once for each card object. */
  document(card: AgentCard): JsonObject;
}

/** Several dialects share one URL: told apart by the version the caller names and the method. */
export interface JsonRpcServing {
  /** `Major.Minor` of what this dialect speaks, its own first. */
  readonly versions: readonly string[];
  /** Its callers name no version. */
  readonly unversioned: boolean;
  readonly methods: ReadonlySet<string>;
  /** The task a request is about. Asked where dialects share a method: the one the task was made over answers. */
  taskIdOf?(request: JsonRpcRequest): string | undefined;
  handle(request: JsonRpcRequest, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
  /** An error in the dialect's own words, for what goes wrong before a method is known. */
  refuse(error: ProtocolError, id: JsonRpcId): ExchangeReply;
}

/** Paths of its own below an agent's base, e.g. everything under `/rest`. */
export interface HttpServing {
  readonly version: string;
  /**
   * First one or two path segments this binding answers. Where two bindings fit, the one whose version the caller names
   * does, else the longer prefix.
   */
  readonly prefix: string;
  /**
   * Present where callers prove who they are in a way of its own: the server does not check them, `context.caller` is
   * anonymous, and `handle` admits them by `admit`. Why a request is refused whatever is in its body, called before much
   * of one is read.
   */
  screen?(head: RequestHead, agent: string): ProtocolError | undefined;
  /** What `screen` does not refuse need not have shown credentials. */
  readonly allowsAnonymous?: boolean;
  /** Absent: it answers for every agent. Where it does not, there is nothing at its paths. */
  serves?(agent: string): boolean;
  /** `exchange.path` is what follows the prefix. `admit` is there for bindings with a `screen`. */
  handle(exchange: ExchangeRequest, context: ServeContext, admit?: AdmitBy): Promise<ExchangeReply>;
  /** `status` is that of HTTP, where it is not the usual one of the error. */
  refuse(error: ProtocolError, exchange: RequestHead, status?: number): ExchangeReply;
}

/**
 * Counts a request for the caller that a binding's own check finds, with its address. Throws, and audits, why it is
 * refused: what the check throws, or RESOURCE_EXHAUSTED.
 */
export type AdmitBy = <T extends { readonly caller: Caller }>(check: () => T) => T;

/** A gRPC service on the endpoint that all agents share. */
export interface RpcServing {
  readonly version: string;
  /** Full name. */
  readonly service: string;
  /** Whether a method answers by a stream. */
  readonly methods: Readonly<Record<string, { readonly streams: boolean }>>;
  /** Serialised `google.protobuf.FileDescriptorProto`s in base64, for reflection. Loaded when a caller first asks. */
  descriptors(): Promise<readonly string[]>;
  /** The same for people: a `.proto` file and the path others import it by. */
  source(): { readonly path: string; readonly text: string };
  /** `context.service` is the agent for requests that name none; a named one is `context.agentOfTenant`. Never rejects. */
  handle(request: RpcRequest, context: ServeContext): Promise<RpcReply>;
  refuse(error: ProtocolError): RpcStatus;
}

export type Calling = ExchangeCalling | RpcCalling | LinkCalling;

/**
 * Reads a published card into the model, with the interfaces by which this dialect would call the agent; undefined for
 * what is no card of its kind. A `certain` one bears a mark that no other dialect's cards have, a `likely` one a mark
 * that others hardly ever have, a `possible` one none.
 */
export type CardReader = (
  value: unknown,
  cardUrl: string | undefined,
) => { readonly card: AgentCard; readonly confidence: CardConfidence } | undefined;

export type CardConfidence = "certain" | "likely" | "possible";

/** Where and as whom an agent is called. */
export interface CallTarget {
  readonly url: string;
  readonly tenant: string | undefined;
  /** Credentials and the like, added to every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly extensions: readonly string[];
  readonly idempotencyKey?: string;
  /** Signs every request, in dialects that sign; `now` is the time to sign. */
  readonly keys?: SigningKeys & { readonly now: number };
  /** Login of the user on whose behalf messages are sent, as the peer named it. */
  readonly loginId?: string;
}

export interface SigningKeys {
  /** Names the key. */
  readonly ak: string;
  /** Signs, and is never sent. */
  readonly sk: string;
}

/** An answer read to its end. */
export interface BufferedResponse {
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
  decode<K extends Exclude<OperationKind, "stream" | "subscribe">>(
    kind: K,
    answer: BufferedResponse,
    asked?: Operation,
  ): Lossy<Outcomes[K]>;
  /** One frame of a stream. Throws like `decode`. */
  decodeFrame(frame: ReceivedEvent): Lossy<StreamFrame>;
  /** For one stream, in place of `decodeFrame`: where a frame is understood only by what was asked and came before. */
  openFrames?(asked?: Operation): FrameDecoder;
  /** Present where peers may require a session or a login before they accept calls. */
  readonly sessions?: SessionCalling;
}

/** Requests that open a session with a peer and log a user in. Pure, too: the client keeps what was opened. */
export interface SessionCalling {
  /** Header that carries the id of the session. */
  readonly header: string;
  /** Whether a refusal asks for a session, or for another than it was given. The peer has done nothing then. */
  isRequiredBy(error: ProtocolError): boolean;
  encodeOpen(target: CallTarget): ExchangeCall;
  /** The id of the session. Throws like `decode`. */
  decodeOpen(answer: BufferedResponse): string;
  /** Sent once within a new session; the answer carries nothing. */
  encodeOpened(target: CallTarget): ExchangeCall;
  encodeLogin(target: CallTarget, authCode: string): ExchangeCall;
  /** The id of the login. Throws like `decode`. */
  decodeLogin(answer: BufferedResponse): string;
}

/** A server-sent event. */
interface ReceivedEvent {
  readonly data: string;
  readonly event: string;
  readonly id: string | undefined;
}

export interface FrameDecoder {
  /** What a frame came to: one, several or none. Throws like `decodeFrame`. */
  decode(frame: ReceivedEvent): Lossy<readonly StreamFrame[]>;
  /** What follows from it that no more frames come. */
  end?(): readonly StreamFrame[];
}

/** Calling over gRPC. As pure as calling over exchanges. */
export interface RpcCalling {
  readonly carrier: "rpc";
  readonly binding: string;
  readonly version: string;
  encode(operation: Operation, target: CallTarget): Lossy<RpcCall>;
  decode<K extends Exclude<OperationKind, "stream" | "subscribe">>(kind: K, message: Uint8Array): Lossy<Outcomes[K]>;
  decodeFrame(message: Uint8Array): Lossy<StreamFrame>;
  /** What the peer meant by a status that is not OK: some are to be told apart only by what was asked. */
  decodeFailure(status: RpcStatus, kind?: OperationKind): ProtocolError;
}

/** Calling a peer over links: operations go out, their outcomes come back, many at a time. */
export interface LinkCalling {
  readonly carrier: "link";
  open(tools: LinkTools): LinkCaller;
}

export interface LinkTools extends CodecTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** As whom the peer must introduce itself, where peers do; anyone unless given. */
  readonly peerId?: string;
  /** How long a message waits for a peer that is not connected. */
  readonly connectMs: number;
  /** How long a task that the peer works on waits for a peer that was connected to come back. */
  readonly patienceMs: number;
  /** Absent: files are sent as bytes only. */
  readonly files?: FileOffers;
}

/** Makes bytes available at an address, for peers that fetch files and read no bytes. */
export interface FileOffers {
  /** The address, which is good for as long as the task runs and a while at most; undefined where none can be given. */
  offer(taskId: string, file: OfferedFile): string | undefined;
  /** The task has ended. */
  withdraw(taskId: string): void;
}

export interface OfferedFile {
  /** Base64. */
  readonly raw: string;
  readonly name: string | undefined;
  readonly mediaType: string | undefined;
}

/** One peer, whichever link it is connected over. */
export interface LinkCaller extends PeerCaller {
  /** Talks over a link until it closes. A link that is open already is closed: a peer has one. */
  attach(link: Link): Promise<Closure>;
}
