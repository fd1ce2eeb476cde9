import type { ClientTlsOptions } from "../auth/login/client-certificate.ts";
import type { CredentialProvider } from "../auth/login/contract.ts";
import type { PublicJwk } from "../auth/signatures/keys.ts";
import type { AgentCard } from "../model/card.ts";
import type { StreamEvent } from "../model/event.ts";
import type { Hops } from "../model/extensions.ts";
import type { JsonObject } from "../model/json.ts";
import type { Loss } from "../model/loss.ts";
import type { Message, Part, RawPart } from "../model/message.ts";
import type {
  ListInput,
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPage,
  TaskPushNotificationConfig,
} from "../model/operation.ts";
import type { Task } from "../model/task.ts";
import type { TraceContext } from "../model/trace.ts";
import type { Content } from "./parts.ts";

/** `attempts` includes the first one. A stream that makes progress resets the count. */
export interface RetryOptions {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
}

/** Information for the user that is not an error. */
export interface Notice {
  readonly kind: "reconnect" | "fallback" | "loss" | "credentials" | "signature";
  readonly message: string;
  /** What could not be encoded or decoded, with `kind` "loss". */
  readonly loss?: Loss;
}

/**
 * A request or a response, for debugging. Headers that may hold credentials are redacted. A streamed response is
 * followed by one for each of its messages, which has a body and no status.
 */
export interface ExchangeTrace {
  readonly direction: "request" | "response";
  /** An HTTP method, or `gRPC`. */
  readonly method?: string;
  readonly url?: string;
  /** HTTP status, or gRPC status code. */
  readonly status?: number;
  readonly headers: Record<string, string>;
  /** Absent for the beginning of a streamed response; for gRPC, the content of the message as JSON, and its size. */
  readonly body?: string;
}

export const SIGNATURE_POLICIES = ["require", "prefer", "ignore"] as const;

/** How to treat a card that is not signed by a trusted key. All but `ignore` reject an invalid signature. */
export type SignaturePolicy = (typeof SIGNATURE_POLICIES)[number];

export interface CardOptions {
  /** Usually credentials. Sent to the card's own origin, and to others only if `credentialOrigins` lists them. */
  readonly headers?: Record<string, string>;
  /**
   * Provides credentials before every request, and again when the agent rejects them. Origins other than the card's own
   * receive them only if `credentialOrigins` lists them; the card itself is first requested without.
   */
  readonly credentials?: CredentialProvider;
  /** Replaces the global `fetch`; use `createGuardedFetch()` for cards from untrusted sources. */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * A client certificate and authorities to trust, over HTTP and gRPC. The certificate is presented where credentials
   * may be sent. A `fetch` of your own must pass on `dispatcher`.
   */
  readonly tls?: ClientTlsOptions;
  /** Timeout for the headers of a response, and again for its body unless that is a stream. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Attempts and delays for requests that are safe to repeat. Default: 4 attempts, streams 12. */
  readonly retry?: RetryOptions;
  /** Aborts all calls. */
  readonly signal?: AbortSignal;
  /** Called with every request and response, without secrets, for debugging. */
  readonly onExchange?: (trace: ExchangeTrace) => void;
  /** Force a protocol version, as `Major.Minor`. */
  readonly version?: string;
  /** Default: `prefer` if `cardKeys` or `jkuOrigins` are set, else `ignore`. */
  readonly signatures?: SignaturePolicy;
  /** Public keys, each with its `kid`, that are trusted to sign the card. */
  readonly cardKeys?: readonly PublicJwk[];
  /** Origins from which key sets may be fetched if a signature refers to one (`jku`); https only. */
  readonly jkuOrigins?: readonly string[];
  /** Force a dialect by its name, e.g. `a2a-v1`. The card is then also looked up at that dialect's location. */
  readonly dialect?: string;
}

export interface ConnectOptions extends CardOptions {
  /** Force a binding (`JSONRPC`, `HTTP+JSON`, `GRPC`); otherwise the card's order decides. */
  readonly binding?: string;
  /** Reject what the dialect cannot express with LOSS_REFUSED; a send is rejected before it is sent. Default: false. */
  readonly strict?: boolean;
  /** Keys that sign every request, in dialects with request signing. */
  readonly keys?: { readonly ak: string; readonly sk: string };
  /** Code of a user's login, exchanged once for a session that every message names, in dialects with user logins. */
  readonly authCode?: string;
  /** Whether a gRPC address without a scheme uses TLS. Default: as the card was fetched. */
  readonly grpcTls?: boolean;
  /**
   * Origins besides the card's own that may receive `headers`, `credentials` and signatures, e.g.
   * `https://api.example.com`; `"card"` trusts the card to name them. Other origins in the card are called without
   * them, and `onNotice` is called.
   */
  readonly credentialOrigins?: readonly string[] | "card";
  /** URL of a card that is passed as an object. */
  readonly cardUrl?: string;
  /** A stream that receives no bytes for this long is treated as broken. Default: 60,000. */
  readonly streamSilenceMs?: number;
  /** URIs of extensions to activate in every call. */
  readonly extensions?: readonly string[];
  /** Called on reconnects, fallbacks, losses and withheld credentials. */
  readonly onNotice?: (notice: Notice) => void;
  /**
   * Agents that the calls came through, so that endless loops between agents are stopped. Default: those of the current
   * run (`turn.hops`), and none outside of a run.
   */
  readonly hops?: Hops;
  /**
   * With an address such as `a2a-lite:irc/#agents#helper`: accounts to call from, as in the configuration, e.g.
   * `{ irc: { host, nick, channels } }`. The first one that is in the room is used.
   */
  readonly channels?: readonly Readonly<Record<string, unknown>>[];
}

const CONNECT_OPTION_NAMES = {
  headers: true,
  credentials: true,
  fetch: true,
  tls: true,
  timeoutMs: true,
  retry: true,
  signal: true,
  onExchange: true,
  version: true,
  signatures: true,
  cardKeys: true,
  jkuOrigins: true,
  dialect: true,
  binding: true,
  strict: true,
  keys: true,
  authCode: true,
  grpcTls: true,
  credentialOrigins: true,
  cardUrl: true,
  streamSilenceMs: true,
  extensions: true,
  onNotice: true,
  hops: true,
  channels: true,
} satisfies Record<keyof ConnectOptions, true>;

export const CONNECT_OPTIONS: readonly string[] = Object.keys(CONNECT_OPTION_NAMES);

export interface CallOptions {
  /** Aborts the call; the task continues. */
  readonly signal?: AbortSignal;
  /** Overrides that of `connect`. */
  readonly timeoutMs?: number;
  /** Makes a send safe to repeat, with agents that support the header `Idempotency-Key`. */
  readonly idempotencyKey?: string;
  /** URIs of extensions to activate, in addition to those of `connect`. */
  readonly extensions?: readonly string[];
  /** Of a send; overrides those of `connect` and of the current run. */
  readonly hops?: Hops;
  /** Trace that the call belongs to, sent as `traceparent` and `tracestate`. */
  readonly trace?: TraceContext;
}

/** A message whose id and role are optional, and what is sent beside it. */
export interface SendRequest {
  readonly message: Partial<Message> & { readonly parts: readonly Part[] };
  readonly configuration?: SendConfiguration;
  readonly metadata?: JsonObject;
}

/** What is sent: text, a part, a list of parts, or a request. */
export type SendContent = Content | Part | SendRequest;

/**
 * A file: a path, which is read; a URL, which the agent fetches; a `Blob` or `File`; bytes or a URL with a name; or what
 * `file(…)` returns. Without `mediaType`, the name tells it.
 */
export type FileInput =
  | string
  | Blob
  | RawPart
  | ({ readonly bytes: Uint8Array } & FileAbout)
  | ({ readonly url: string } & FileAbout);

interface FileAbout {
  readonly name?: string | undefined;
  readonly filename?: string | undefined;
  readonly mediaType?: string | undefined;
  readonly metadata?: JsonObject | undefined;
}

export interface SendOptions extends CallOptions {
  /** The task that the message continues, e.g. by answering its question. Default: a new task. */
  readonly taskId?: string | undefined;
  /** The conversation that a new task belongs to, as an earlier task's `contextId`. Default: a new one. */
  readonly contextId?: string | undefined;
  /** Added to the message, after its other parts. */
  readonly files?: readonly FileInput[] | undefined;
  /** Metadata of the request. */
  readonly metadata?: JsonObject | undefined;
}

export type ReplyOptions = Omit<SendOptions, "contextId" | "taskId">;

/** `number` is the position of the event in the task's log, if the agent sends it. */
export interface ClientEvent {
  readonly number?: number;
  readonly event: StreamEvent;
}

export interface ChosenInterface {
  readonly url: string;
  readonly binding: string;
  readonly version: string;
  /** Name of the dialect. */
  readonly dialect: string;
  readonly tenant?: string;
}

export interface PushListQuery {
  readonly pageSize?: number;
  readonly pageToken?: string;
}

/** A remote agent. Rejects with `ProtocolError` for the agent's errors, `ConnectionError` for connection failures. */
export interface RemoteAgent {
  /** The card in the format of A2A 1.0, whichever version the agent publishes. */
  readonly card: AgentCard;
  /** The interface in use. Replaced by another when it fails in a way that shows that the agent received nothing. */
  readonly interface: ChosenInterface;
  /**
   * Sends a message and waits for the answer: `{ task }`, when the task has ended or asks for something, or
   * `{ message }`. Retried automatically only with an `idempotencyKey`.
   */
  send(content: SendContent, options?: SendOptions): Promise<SendOutcome>;
  /**
   * Answers a task that asks for input (`TASK_STATE_INPUT_REQUIRED`): `send` with its `taskId`. Takes a task, its id, or
   * what `send` resolved to; an agent that answered without a task is answered in the same conversation.
   */
  reply(to: string | Task | SendOutcome, content: SendContent, options?: ReplyOptions): Promise<SendOutcome>;
  /**
   * Sends a message and follows the task. A broken connection is resumed without losing or duplicating events if the
   * agent numbers them; otherwise the iteration continues with `{ task }`, the whole task at the time of the reconnect.
   * Leaving the loop closes the connection; the task continues.
   */
  stream(content: SendContent, options?: SendOptions): AsyncIterable<ClientEvent>;
  /**
   * Follows a task, starting after event number `after` if set. Resumes like `stream`. If the dialect does not support
   * subscriptions, the task is polled and returned whenever it has changed.
   */
  subscribe(id: string, options?: CallOptions & { readonly after?: number }): AsyncIterable<ClientEvent>;
  /** Reads a task. */
  get(id: string, options?: CallOptions & { readonly historyLength?: number }): Promise<Task>;
  /** All pages, fetched on demand. */
  list(query?: Omit<ListInput, "pageToken">, options?: CallOptions): AsyncIterable<Task>;
  /** One page of tasks, newest first, with the token of the next page. */
  listPage(query?: ListInput, options?: CallOptions): Promise<TaskPage>;
  /** Cancels a task and returns its new state. */
  cancel(id: string, options?: CallOptions & { readonly metadata?: JsonObject }): Promise<Task>;
  /** The card for authenticated callers. */
  extendedCard(options?: CallOptions): Promise<AgentCard>;
  /** Registers a webhook for a task. */
  createPushConfig(
    taskId: string,
    config: TaskPushNotificationConfig,
    options?: CallOptions,
  ): Promise<TaskPushNotificationConfig>;
  /** Reads a webhook of a task, without its secrets. */
  getPushConfig(taskId: string, id: string, options?: CallOptions): Promise<TaskPushNotificationConfig>;
  /** Lists the webhooks of a task, one page at a time. */
  listPushConfigs(taskId: string, query?: PushListQuery, options?: CallOptions): Promise<PushConfigPage>;
  /** Removes a webhook of a task; removing one that does not exist is not an error. */
  deletePushConfig(taskId: string, id: string, options?: CallOptions): Promise<void>;
  /** Closes a connection that outlasts calls; calls that are under way fail. Without one, it does nothing. */
  close(): Promise<void>;
}

export const DEFAULT_TIMEOUT_MS = 60_000;
export const DEFAULT_STREAM_SILENCE_MS = 60_000;

/** A user may be waiting for the response, so a request gives up within seconds … */
export const DEFAULT_REQUEST_RETRY: RetryOptions = { attempts: 4, baseMs: 250, capMs: 5_000 };
/** … while a broken stream outlasts the restart of a server. */
export const DEFAULT_STREAM_RETRY: RetryOptions = { attempts: 12, baseMs: 250, capMs: 5_000 };
/** Polling interval for a task that cannot be subscribed to; grows while nothing changes. */
export const DEFAULT_POLLING = { baseMs: 1_000, capMs: 5_000 };
