/** Serving and calling over connections that outlast a request. */

import type { BackoffPolicy } from "../model/backoff.ts";
import type { Caller } from "../model/caller.ts";
import type { AgentCard } from "../model/card.ts";
import type { CallContext, Delivery, Dispatcher, ReplyTo } from "../model/operation.ts";
import type { LogFields } from "../model/ports.ts";
import type { Records } from "../model/records.ts";
import type { Closure, Connection } from "../wire/connection.ts";
import type { FullReply, RequestHead } from "../wire/exchange.ts";
import type { Link } from "../wire/link.ts";
import type { Abilities, AgentService, CodecTools, ServeContext, ServeLimits } from "./contract.ts";

export type { Records };

/** What the server provides to the carriers of one dialect. */
export interface CarrierHost extends CodecTools {
  /** The served agents by name. */
  readonly agents: ReadonlyMap<string, AgentService>;
  /** Whether connections can be accepted, i.e. the server owns its listener. */
  readonly accepts: boolean;
  readonly limits: ServeLimits;
  /**
   * For one message of a caller that the dialect has identified. The message counts as a request; throws a
   * ProtocolError if the agent is not found or the caller sends too many.
   */
  context(agent: string, caller: Caller): ServeContext;
  readonly replies: ReplyRegistry;
  readonly records: Records;
}

interface TaskScope {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
}

/** Deliveries of tasks that exist; those of new messages are registered by `replyTo`. */
interface ReplyRegistry {
  /**
   * One of the same id gets the new address and keeps its cursor, and whatever is under way for it is aborted at once.
   * `after` is the cursor of one that is new; default: the newest event. False: the task is gone.
   */
  put(
    scope: TaskScope,
    taskId: string,
    reply: ReplyTo & { readonly dialect: string; readonly after?: number },
  ): Promise<boolean>;
}

/**
 * Connections that outlast a request: links and channels, over which agents are served, peers are called, or both. The
 * dialect decides what a message is, who sent it and which agent it is for; the host only keeps connections open.
 * Pending work belongs to the carrier, not to a connection: the next connection continues it.
 */
export interface Carrier<C extends Connection = Connection> {
  /** Unique on a server; the route of its deliveries. */
  readonly name: string;
  /** Connections that the host dials, and redials whenever they close. */
  readonly open?: readonly DialledConnection<C>[];
  /** Connections that the server accepts. */
  readonly accept?: AcceptedConnections;
  /**
   * Delivers answers that messages asked for by `replyTo`, over whatever connection there is: called when one is due, in
   * this process or a later one.
   */
  deliver?(delivery: Delivery): Promise<void>;
  /** A peer that can be called over these connections; undefined for one that never can. */
  peer?(id: string): PeerCaller | undefined;
  /** Resolves when all complete replies have been sent, or after this time. */
  settle(milliseconds: number): Promise<void>;
  /** Stops sending; tasks continue in the next process. */
  close(): void;
  /**
   * The same carrier again, after this one was closed: of several processes one has the connections, and may get them
   * back. Required if there are connections to dial and the store is shared.
   */
  renew?(): Carrier<C> | Promise<Carrier<C>>;
}

/** One connection from its opening to its end. */
export interface Conversation<C extends Connection = Connection> {
  /** Identifies the connection in the log. */
  readonly about: LogFields;
  /** Uses the connection until it closes. Called again for the next connection. */
  converse(connection: C): Promise<Closure>;
}

export interface DialledConnection<C extends Connection = Connection> extends Conversation<C> {
  /** What is dialled, for the log: `the link to Xiaoyi`. */
  readonly label: string;
  /** Rejects with a DialError. */
  dial(signal: AbortSignal): Promise<C>;
  readonly policy: BackoffPolicy;
  /** Human-readable probable cause. */
  explain?(trouble: ConnectionTrouble): string | undefined;
}

export type ConnectionTrouble =
  /** `status` is the HTTP status. */
  | { readonly kind: "refused"; readonly status: number }
  | ({ readonly kind: "closed"; readonly lastedMs: number } & Closure);

export interface AcceptedConnections {
  /** Relative to the path that the server is mounted at. */
  readonly path: string;
  /** Called before the request is upgraded to a WebSocket. */
  admit(request: UpgradeRequest): Conversation<Link> | ConnectionRefusal;
  /** Answers plain requests related to these connections, e.g. for files offered over them; undefined for any other. */
  answer?(request: RequestHead): FullReply | undefined;
}

export interface UpgradeRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Base URL at which the peer reaches this server, if known. */
  readonly baseUrl: string | undefined;
}

export interface ConnectionRefusal {
  /** 429: the credentials are right, but the peer dials too often. */
  readonly status: 401 | 403 | 429;
  /** Seconds until the peer may dial again. */
  readonly retryAfter?: number;
  readonly message: string;
  /** For the log. */
  readonly about: LogFields;
}

/** Calls a peer over a bidirectional connection. */
export interface PeerCaller extends Dispatcher<Pick<CallContext, "signal" | "hops">> {
  /** Absent: messages can be sent and cancelled; no other operation is supported. */
  readonly can?: Pick<Abilities, "operations"> | undefined;
  /** Whether the peer is connected to this process; absent: it may be. */
  readonly connected?: boolean;
  /** The newest that the peer has sent, where peers do. */
  readonly card?: AgentCard | undefined;
}
