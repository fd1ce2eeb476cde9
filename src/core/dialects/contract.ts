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
 * A dialect is a pair of codecs over one model: one for serving, one for calling. A dialect that holds state or needs a
 * clock is created by a function of `DialectTools` and its own settings.
 */
export interface Dialect extends CallableDialect {
  readonly serving: Serving;
}

/** The part of a dialect that a client needs. */
export interface CallableDialect {
  readonly name: string;
  readonly can: Abilities;
  /** Every loss that its codecs can report. */
  readonly losses: readonly LossRule[];
  readonly calling: readonly Calling[];
  /** Absent: cards are not published in this dialect. */
  readonly readCard?: CardReader;
  /** For dialects that do not publish cards: a card derived from the agent's address alone. */
  readonly cardOf?: (url: string) => AgentCard;
  /** How to give the command line the credentials that its agents ask for, where their cards cannot say. */
  readonly credentialHint?: string;
}

/** The server's ports, injected into dialects that are created for a server. */
export interface DialectTools {
  readonly clock: Clock;
  readonly ids: IdGenerator;
  /** In [0, 1), like `Math.random`. */
  readonly random: () => number;
  readonly log: Log;
  readonly meter: Meter;
}

/** What a dialect can express. The core checks these flags, never a dialect's name. */
export interface Abilities {
  readonly streaming: boolean;
  /** Streams can be resumed from a number. */
  readonly replay: boolean;
  readonly operations: Readonly<Record<OperationKind, boolean>>;
  /** A send can be answered before its task has ended. */
  readonly returnImmediately: boolean;
  /** The caller chooses the id of a new task, and so knows it before the agent has answered. */
  readonly chosenIds: boolean;
  readonly parts: { readonly text: boolean; readonly raw: boolean; readonly url: boolean; readonly data: boolean };
  readonly artifacts: boolean;
  readonly inputRequired: boolean;
  readonly metadata: boolean;
}

/** One served agent, as dialects see it. */
export interface AgentService extends Dispatcher {
  readonly name: string;
  readonly profile: AgentProfile;
  /** The public card. The same object until it changes, so that its encoded form can be cached by identity. */
  readonly card: AgentCard;
  /** Returns those of the requested extensions that are activated. */
  activate(requested: readonly string[]): readonly string[];
  /** The dialect that created the task, if the caller may read it. */
  originOf(taskId: string, caller: Caller): Promise<string | undefined>;
}

/** What a codec needs besides its input: a way to report losses, and ids for messages and contexts without one. */
export interface CodecTools {
  /** Throws LOSS_REFUSED if losses are not allowed. */
  readonly report: (losses: readonly Loss[]) => void;
  readonly ids: Pick<IdGenerator, "message" | "context">;
}

export interface ServeContext extends CodecTools {
  readonly service: AgentService;
  readonly caller: Caller;
  readonly limits: ServeLimits;
  /** The agent that the request's tenant names, where tenants name agents. */
  readonly agentOfTenant: (tenant: string) => AgentService | undefined;
}

export interface ServeLimits {
  readonly maxDepth: number;
  readonly maxValues: number;
  readonly maxParts: number;
  readonly keepAliveMs: number;
}

interface Serving {
  /** Agent card documents. */
  readonly cards?: readonly CardServing[];
  /** Entries for a card's list of interfaces. */
  interfaces?(place: AgentEndpoint): readonly AgentInterface[];
  readonly jsonRpc?: JsonRpcServing;
  readonly http?: readonly HttpServing[];
  readonly rpc?: RpcServing;
  /** Called once, when the engine has started. Throws a TypeError for invalid settings. */
  carriers?(host: CarrierHost): Promise<readonly Carrier[]>;
  /** Called after the engine has closed; no requests follow. */
  close?(): Promise<void>;
  /** Encodes events for webhooks registered in this dialect. Absent: webhooks cannot be registered in it. */
  readonly push?: PushEncoding;
}

export interface PushBody {
  readonly contentType: string;
  readonly body: string;
}

export interface PushEncoding {
  /** Every body contains the whole task, so that chunks superseded by a later event need not be sent. */
  readonly wholeTask: boolean;
  /** Encodes one event; `task` returns the task as of that event. */
  encode(frame: StreamFrame, task: () => Promise<Task>, report: CodecTools["report"]): Promise<PushBody>;
}

/** Where an agent is served. */
export interface AgentEndpoint {
  /** Base URL without a trailing slash. */
  readonly base: string;
  /** `host:port` of the gRPC endpoint that all agents share, if there is one. */
  readonly rpc: string | undefined;
  readonly name: string;
  /** Whether it serves requests that name no agent. */
  readonly isDefault: boolean;
}

/**
 * A document at a path below the agent's base. Dialects may share a path: a caller that names a version gets that
 * version's document, any other caller gets one merged document that readers of each version understand.
 */
export interface CardServing {
  readonly path: string;
  /** `Major.Minor`. */
  readonly version: string;
  /** Members of the document, built once per card object. */
  document(card: AgentCard): JsonObject;
}

/** Several dialects share one URL; the version that the caller names and the method select one. */
export interface JsonRpcServing {
  /** Supported versions as `Major.Minor`, the dialect's own first. */
  readonly versions: readonly string[];
  /** Whether its callers send no version. */
  readonly unversioned: boolean;
  readonly methods: ReadonlySet<string>;
  /** The task that a request refers to. Where dialects share a method, the one that created the task answers. */
  taskIdOf?(request: JsonRpcRequest): string | undefined;
  handle(request: JsonRpcRequest, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
  /** Encodes an error that occurs before the method is known. */
  refuse(error: ProtocolError, id: JsonRpcId): ExchangeReply;
}

/** A binding with its own paths below an agent's base, e.g. everything under `/rest`. */
export type HttpServing = AdmittedHttpServing | SelfAdmittingHttpServing;

interface HttpServingBase {
  readonly version: string;
  /**
   * First one or two path segments that this binding serves. If two bindings match, the version that the caller names
   * decides, then the longer prefix.
   */
  readonly prefix: string;
  /** Whether the binding serves this agent; if not, its paths do not exist. Absent: it serves every agent. */
  serves?(agent: string): boolean;
  /** `status`: the HTTP status, where it differs from the error's default. */
  refuse(error: ProtocolError, exchange: RequestHead, status?: number): ExchangeReply;
}

/** The server admits its callers. */
export interface AdmittedHttpServing extends HttpServingBase {
  readonly screen?: undefined;
  /** `exchange.path` is relative to the prefix. */
  handle(exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
}

/** Authenticates its callers itself: `context.caller` is anonymous, and the body is available through `admit` only. */
export interface SelfAdmittingHttpServing extends HttpServingBase {
  /** Why a request is refused regardless of its body; called before much of the body is read. */
  screen(head: RequestHead, agent: string): ProtocolError | undefined;
  /** Requests that pass `screen` may lack credentials. */
  readonly allowsAnonymous?: boolean;
  /** `head.path` is relative to the prefix. */
  handle(head: RequestHead, context: ServeContext, admit: AdmitBy): Promise<ExchangeReply>;
}

/**
 * Runs a binding's own authentication check and counts the request for the caller it returns, with its address. Throws
 * and audits a refusal: the error of the check, or RESOURCE_EXHAUSTED. `body` is given to the check if it is short, for
 * credentials in it.
 */
export type AdmitBy = <T extends { readonly caller: Caller }>(
  check: (body: Buffer | undefined) => T,
) => T & { readonly exchange: ExchangeRequest };

/** A gRPC service on the endpoint that all agents share. */
export interface RpcServing {
  readonly version: string;
  /** Fully qualified name. */
  readonly service: string;
  /** By name; `streams`: the method is server-streaming. */
  readonly methods: Readonly<Record<string, { readonly streams: boolean }>>;
  /** Serialised `google.protobuf.FileDescriptorProto`s in base64, for reflection. Loaded on first use. */
  descriptors(): Promise<readonly string[]>;
  /** The same as a `.proto` file, with its import path. */
  source(): { readonly path: string; readonly text: string };
  /** `context.service` is the default agent; a request that names one uses `context.agentOfTenant`. Never rejects. */
  handle(request: RpcRequest, context: ServeContext): Promise<RpcReply>;
  refuse(error: ProtocolError): RpcStatus;
}

export type Calling = ExchangeCalling | RpcCalling | LinkCalling;

/**
 * Decodes a published card, with the interfaces by which this dialect would call the agent; undefined if the value is
 * not a card of this dialect. `certain`: it has a feature that no other dialect's cards have; `likely`: one that others
 * rarely have; `possible`: none.
 */
export type CardReader = (
  value: unknown,
  cardUrl: string | undefined,
) => { readonly card: AgentCard; readonly confidence: CardConfidence } | undefined;

export type CardConfidence = "certain" | "likely" | "possible";

/** Address and credentials for calling an agent. */
export interface CallTarget {
  readonly url: string;
  readonly tenant: string | undefined;
  /** Credentials and the like, added to every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly extensions: readonly string[];
  readonly idempotencyKey?: string | undefined;
  /** For dialects that sign every request; `now` is the timestamp to sign. */
  readonly keys?: (SigningKeys & { readonly now: number }) | undefined;
  /** Login id that the peer issued for the user on whose behalf messages are sent. */
  readonly loginId?: string | undefined;
}

export interface SigningKeys {
  /** Key id. */
  readonly ak: string;
  /** Secret; never sent. */
  readonly sk: string;
}

/** A fully read response. */
export interface BufferedResponse {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Pure in both directions: the client owns sockets, time and retries. */
export interface ExchangeCalling {
  readonly carrier: "exchange";
  /** As named in a card, e.g. `JSONRPC`. */
  readonly binding: string;
  readonly version: string;
  encode(operation: Operation, target: CallTarget): Lossy<ExchangeCall>;
  /** The same call in the other form in use, for peers that do not support the first one. */
  alternative?(call: ExchangeCall): ExchangeCall | undefined;
  /** Throws the peer's error as a ProtocolError, and INVALID_AGENT_RESPONSE for what it cannot read. */
  decode<K extends Exclude<OperationKind, "stream" | "subscribe">>(
    kind: K,
    answer: BufferedResponse,
    asked?: Operation,
  ): Lossy<Outcomes[K]>;
  /** One frame of a stream; undefined for an event of an unknown kind. Throws like `decode`. */
  decodeFrame(frame: ReceivedEvent): Lossy<StreamFrame | undefined>;
  /** Replaces `decodeFrame` where decoding a frame depends on the request and on earlier frames. One per stream. */
  openFrames?(asked?: Operation): FrameDecoder;
  /** Present where peers may require a session or a login before they accept calls. */
  readonly sessions?: SessionCalling;
}

/** Requests that open a session with a peer and log a user in. Also pure: the client stores sessions and logins. */
export interface SessionCalling {
  /** Header that carries the session id. */
  readonly header: string;
  /** Whether the error asks for a session, or for a new one. The peer has not processed the request in that case. */
  isRequiredBy(error: ProtocolError): boolean;
  encodeOpen(target: CallTarget): ExchangeCall;
  /** The session id. Throws like `decode`. */
  decodeOpen(answer: BufferedResponse): string;
  /** Sent once within a new session; the response is empty. */
  encodeOpened(target: CallTarget): ExchangeCall;
  encodeLogin(target: CallTarget, authCode: string): ExchangeCall;
  /** The login id. Throws like `decode`. */
  decodeLogin(answer: BufferedResponse): string;
}

/** A server-sent event. */
interface ReceivedEvent {
  readonly data: string;
  readonly event: string;
  readonly id: string | undefined;
}

export interface FrameDecoder {
  /** Decodes a frame to zero or more frames. Throws like `decodeFrame`. */
  decode(frame: ReceivedEvent): Lossy<readonly StreamFrame[]>;
  /** Called at the end of the stream; returns any remaining frames. */
  end?(): readonly StreamFrame[];
}

/** Calling over gRPC. Pure, like `ExchangeCalling`. */
export interface RpcCalling {
  readonly carrier: "rpc";
  readonly binding: string;
  readonly version: string;
  encode(operation: Operation, target: CallTarget): Lossy<RpcCall>;
  decode<K extends Exclude<OperationKind, "stream" | "subscribe">>(kind: K, message: Uint8Array): Lossy<Outcomes[K]>;
  /** Undefined for an event of an unknown kind. */
  decodeFrame(message: Uint8Array): Lossy<StreamFrame | undefined>;
  /** Decodes a status other than OK. The meaning of some depends on the operation. */
  decodeFailure(status: RpcStatus, kind?: OperationKind): ProtocolError;
}

/** Calling a peer over links, with many operations in flight at a time. */
export interface LinkCalling {
  readonly carrier: "link";
  open(tools: LinkTools): LinkCaller;
}

export interface LinkTools extends CodecTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** The id with which the peer must identify itself, where the dialect has one. Default: any. */
  readonly peerId?: string;
  /** How long a message waits for the peer to connect. */
  readonly connectMs: number;
  /** How long a running task waits for a disconnected peer to reconnect. */
  readonly patienceMs: number;
  /** Absent: files are sent as bytes only. */
  readonly files?: FileOffers;
}

/** Offers files at a URL, for peers that fetch files and do not accept inline bytes. */
export interface FileOffers {
  /** The URL, valid while the task runs and for a limited time at most; undefined if none can be offered. */
  offer(taskId: string, file: OfferedFile): string | undefined;
  /** Called when the task has ended. */
  withdraw(taskId: string): void;
}

export interface OfferedFile {
  /** Base64. */
  readonly raw: string;
  readonly name: string | undefined;
  readonly mediaType: string | undefined;
}

/** One peer, independent of the link it is connected over. */
export interface LinkCaller extends PeerCaller {
  /** Uses a link until it closes. An earlier link that is still open is closed: a peer has one. */
  attach(link: Link): Promise<Closure>;
}
