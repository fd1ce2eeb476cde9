import type { CredentialProvider } from "../auth/login/contract.ts";
import type { PublicJwk } from "../auth/signatures/keys.ts";
import type { AgentCard } from "../model/card.ts";
import type { StreamEvent } from "../model/event.ts";
import type { Hops } from "../model/extensions.ts";
import type { JsonObject } from "../model/json.ts";
import type { Loss } from "../model/loss.ts";
import type { Message, Part } from "../model/message.ts";
import type {
  ListInput,
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPage,
  TaskPushNotificationConfig,
} from "../model/operation.ts";
import type { Task } from "../model/task.ts";

/** `attempts` counts all tries, the first included. A stream that moves on starts counting anew. */
export interface RetryOptions {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
}

/** Something worth telling a person that is no error. */
export interface Notice {
  readonly kind: "reconnect" | "fallback" | "loss" | "credentials" | "signature";
  readonly message: string;
  /** What could not be said or heard, with `kind` "loss". */
  readonly loss?: Loss;
}

/** One half of an exchange, for debugging. Headers that may hold credentials are redacted. */
export interface ExchangeTrace {
  readonly direction: "request" | "response";
  /** An HTTP method, or `gRPC`. */
  readonly method?: string;
  readonly url?: string;
  /** Of HTTP, or the code of a gRPC status. */
  readonly status?: number;
  readonly headers: Record<string, string>;
  /** Absent for a streamed answer; of gRPC only its size. */
  readonly body?: string;
}

export const SIGNATURE_POLICIES = ["require", "prefer", "ignore"] as const;

/** What becomes of a card that no trusted key has signed. A signature that is wrong is refused by all but `ignore`. */
export type SignaturePolicy = (typeof SIGNATURE_POLICIES)[number];

export interface CardOptions {
  /** Sent to the card's own origin: credentials, usually. Other origins get them only by `credentialOrigins`. */
  readonly headers?: Record<string, string>;
  /**
   * Asked before every request who is calling, and once more when the agent refuses. Other
   * origins than the card's own get them only by `credentialOrigins`; the card itself is first asked for without.
   */
  readonly credentials?: CredentialProvider;
  /** Replaces the global `fetch`; use `createGuardedFetch()` for cards from strangers. */
  readonly fetch?: typeof globalThis.fetch;
  /** For the headers of an answer, and again for the rest of it unless that is a stream. Default 60,000. */
  readonly timeoutMs?: number;
  /** Attempts and waits for what is safe to repeat. Default: 4 attempts, streams 12. */
  readonly retry?: RetryOptions;
  /** Aborts everything. */
  readonly signal?: AbortSignal;
  /** Called with every request and response, without secrets, for debugging. */
  readonly onExchange?: (trace: ExchangeTrace) => void;
  /** Force a version of the protocol, as `Major.Minor`. */
  readonly version?: string;
  /** Default: `prefer` where keys or origins are given, else `ignore`. */
  readonly signatures?: SignaturePolicy;
  /** Public keys, each with its `kid`, that are trusted to sign the card. */
  readonly cardKeys?: readonly PublicJwk[];
  /** Origins whose key sets may be fetched where a signature names one (`jku`); https only. */
  readonly jkuOrigins?: readonly string[];
  /** Force a dialect by its name, e.g. `a2a-v1`. The card is then looked for where that dialect has it, too. */
  readonly dialect?: string;
}

export interface ConnectOptions extends CardOptions {
  /** Force a binding (`JSONRPC`, `HTTP+JSON`, `GRPC`); otherwise the card's order decides. */
  readonly binding?: string;
  /**
   * Refuse, with LOSS_REFUSED, what the dialect cannot express. A send is refused before it is sent. Default: false.
   */
  readonly strict?: boolean;
  /** Keys that every request is signed with, in dialects that sign. */
  readonly keys?: { readonly ak: string; readonly sk: string };
  /** Code of a user's login, exchanged once for a login that every message then names, in dialects in which users log in. */
  readonly authCode?: string;
  /** Whether a gRPC address without a scheme means TLS. Default: as the card was fetched. */
  readonly grpcTls?: boolean;
  /**
   * Origins besides the card's own that `headers`, `credentials` and signatures may go to, e.g. `https://api.example.com`;
   * `"card"` trusts the card to name them. Whatever else a card names is called without them, and a notice tells.
   */
  readonly credentialOrigins?: readonly string[] | "card";
  /** Where a card was found that is given as an object. */
  readonly cardUrl?: string;
  /** A stream without any sign of life for this long counts as broken. Default 60,000. */
  readonly streamSilenceMs?: number;
  /** Extension URIs to ask for in every call. */
  readonly extensions?: readonly string[];
  /** Called for reconnects, fallbacks, losses and withheld credentials. */
  readonly onNotice?: (notice: Notice) => void;
  /**
   * Which agents the calls came through, so that agents which call each other without end are stopped. Default: those
   * of the run that makes the call (`turn.hops`), and none outside of one.
   */
  readonly hops?: Hops;
}

const CONNECT_OPTION_NAMES = {
  headers: true,
  credentials: true,
  fetch: true,
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
} satisfies Record<keyof ConnectOptions, true>;

export const CONNECT_OPTIONS: readonly string[] = Object.keys(CONNECT_OPTION_NAMES);

export interface CallOptions {
  /** Aborts the call; the task continues. */
  readonly signal?: AbortSignal;
  /** Instead of that of `connect`. */
  readonly timeoutMs?: number;
  /** Makes a send safe to repeat, with agents that know the header `Idempotency-Key`. */
  readonly idempotencyKey?: string;
  /** Extension URIs to ask for, besides those of `connect`. */
  readonly extensions?: readonly string[];
  /** Of a send, instead of those given to `connect` and those of the run. */
  readonly hops?: Hops;
}

/** A text, or a whole message of which id and role may be left out. */
export type SendText =
  | string
  | {
      readonly message: Partial<Message> & { readonly parts: readonly Part[] };
      readonly configuration?: SendConfiguration;
      readonly metadata?: JsonObject;
    };

/** `number` is the event's place in the task's log, where the agent tells it. */
export interface ClientEvent {
  readonly number?: number;
  readonly event: StreamEvent;
}

export interface ChosenInterface {
  readonly url: string;
  readonly binding: string;
  readonly version: string;
  /** Name of the dialect spoken there. */
  readonly dialect: string;
  readonly tenant?: string;
}

export interface PushListQuery {
  readonly pageSize?: number;
  readonly pageToken?: string;
}

/** An agent somewhere else. Rejects with `ProtocolError` for what the agent said and `ConnectionError` for the way there. */
export interface RemoteAgent {
  /** The card in the form of A2A 1.0, whatever version the agent publishes. */
  readonly card: AgentCard;
  /** The one in use. Another one takes its place when it fails in a way that shows that nothing was taken. */
  readonly interface: ChosenInterface;
  /** Repeated by itself only with an `idempotencyKey`. */
  send(input: SendText, options?: CallOptions): Promise<SendOutcome>;
  /**
   * Sends and follows. A broken connection is resumed without losing or doubling an event when the agent numbers
   * them; when it does not, the iteration continues with `{ task }`, the whole task as it stood at the new connection.
   * Leaving the loop closes the connection; the task continues.
   */
  stream(input: SendText, options?: CallOptions): AsyncIterable<ClientEvent>;
  /**
   * Follows a task, from the event after number `after` if that is given. Resumes as `stream` does. Where the dialect
   * does not support it, the task is polled and returned whenever it has changed.
   */
  subscribe(id: string, options?: CallOptions & { readonly after?: number }): AsyncIterable<ClientEvent>;
  /** Reads a task. */
  get(id: string, options?: CallOptions & { readonly historyLength?: number }): Promise<Task>;
  /** All pages, fetched as they are needed. */
  list(query?: Omit<ListInput, "pageToken">, options?: CallOptions): AsyncIterable<Task>;
  /** One page of tasks, newest first, with the token of the next. */
  listPage(query?: ListInput, options?: CallOptions): Promise<TaskPage>;
  /** Cancels a task and returns it as it is then. */
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
  /** Webhooks of a task, a page at a time. */
  listPushConfigs(taskId: string, query?: PushListQuery, options?: CallOptions): Promise<PushConfigPage>;
  /** Removes a webhook of a task; removing one that is not there is not an error. */
  deletePushConfig(taskId: string, id: string, options?: CallOptions): Promise<void>;
}

export const DEFAULT_TIMEOUT_MS = 60_000;
export const DEFAULT_STREAM_SILENCE_MS = 60_000;

/** Someone may be waiting for the answer, so a request gives up within seconds … */
export const DEFAULT_REQUEST_RETRY: RetryOptions = { attempts: 4, baseMs: 250, capMs: 5_000 };
/** … while a stream that broke outlasts the restart of a server. */
export const DEFAULT_STREAM_RETRY: RetryOptions = { attempts: 12, baseMs: 250, capMs: 5_000 };
/** A task that cannot be followed is asked for this often, less often while nothing changes. */
export const DEFAULT_POLLING = { baseMs: 1_000, capMs: 5_000 };
