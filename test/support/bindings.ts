/** How the same request is made in every binding of A2A 1.0, and what tests may ask of each. */
import { grpc } from "./grpc-binding.ts";
import { HTTP_BINDINGS } from "./http-bindings.ts";
import type { RawRequest } from "./raw-http.ts";
import type { Headers, WireError, WireEvent } from "./wire-types.ts";

export type Params = Readonly<Record<string, unknown>>;

export type Method =
  | "SendMessage"
  | "SendStreamingMessage"
  | "GetTask"
  | "ListTasks"
  | "CancelTask"
  | "SubscribeToTask"
  | "CreateTaskPushNotificationConfig"
  | "GetTaskPushNotificationConfig"
  | "ListTaskPushNotificationConfigs"
  | "DeleteTaskPushNotificationConfig"
  | "GetExtendedAgentCard";

interface Answered {
  readonly result?: unknown;
  readonly error?: WireError;
}

/** Of HTTP, or what stands for it over gRPC: metadata of both ends of the answer. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Answer extends Answered {
  /** Of HTTP, which over gRPC is 200 whatever the answer is. */
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** As it came, or as JSON where it came in bytes. */
  readonly text: string;
}

export interface NumberedEvent {
  readonly number: number | undefined;
  readonly event: WireEvent;
}

export interface OpenStream {
  readonly headers: AnswerHeaders;
  /** The stream broke before its end. */
  readonly cut: boolean;
  /** Undefined once the stream is over. */
  next(): Promise<NumberedEvent | undefined>;
  close(): void;
}

/** A request that can be left before it is answered. */
export interface Pending {
  /** Rejects when it was left. */
  readonly answered: Promise<unknown>;
  leave(): void;
}

/** One request. `base` is the URL of the agent, or that of the server for its default agent. */
export interface Ask {
  readonly base: string;
  readonly method: Method;
  readonly params: Params;
  readonly headers: Headers;
}

/** What a binding lets a test do. What is about something that it does not have is not tested over it. */
interface Abilities {
  /** Params may be any JSON: of the wrong type, with unknown members, with `null`. Otherwise they must fit the schema. */
  readonly anyJson: boolean;
  /** Events have numbers although nobody asked for the extension. */
  readonly numbersUnasked: boolean;
  /** The agent is named by the URL, so that a tenant can be named besides. */
  readonly agentAndTenant: boolean;
}

export interface Binding {
  readonly name: "JSON-RPC" | "HTTP+JSON" | "gRPC";
  readonly can: Abilities;
  /** Throws for what is not a well-formed answer of this binding. */
  call(ask: Ask): Promise<Answer>;
  /** A stream, or the error that was answered instead of one. */
  open(ask: Ask): Promise<OpenStream | WireError>;
  begin(ask: Ask): Pending;
  /** Only where requests and answers are JSON over HTTP: paths, media types and frames are looked at through it. */
  readonly http?: HttpForm;
}

/** The form of requests and answers, for tests that send them in their own way. */
export interface HttpForm {
  readonly mediaType: string;
  request(method: Method, params: Params): RawRequest;
  read(status: number, headers: AnswerHeaders, body: string): Answered;
  /** The StreamResponse in one event of a stream. */
  readEvent(data: string): unknown;
}

export interface HttpBinding extends Binding {
  readonly http: HttpForm;
}

export { HTTP_BINDINGS };

export const BINDINGS: readonly Binding[] = [...HTTP_BINDINGS, grpc];
