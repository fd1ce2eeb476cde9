/** gRPC as a stranger speaks it: the library's client, the published `.proto`, and none of our code. */
import {
  Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import type { Answer, AnswerHeaders, Ask, Binding, Method, NumberedEvent, OpenStream } from "./bindings.ts";
import { readStatusDetails } from "./grpc-status-details.ts";
import { fromProto, toProto } from "./proto-conversions.ts";
import { A2A_V1_SERVICE, type Plain, type PublishedMethod } from "./published-protos.ts";
import { sendRaw } from "./raw-http.ts";
import { toWireError } from "./wire-error.ts";
import type { Headers, WireError, WireEvent } from "./wire-types.ts";

const REPLAY = "urn:dragoman:ext:replay:v1";
const pass = (bytes: Buffer) => bytes;

/** Where an agent is: gRPC has one address for all of them, and the tenant says which is meant. */
interface Where {
  readonly client: Client;
  readonly tenant: string | undefined;
}

const clients = new Map<string, Client>();

function clientOf(address: string): Client {
  let client = clients.get(address);
  if (client === undefined) {
    client = new Client(address, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });
    clients.set(address, client);
  }
  return client;
}

/** From the agent's card, as every client learns it. */
async function find(base: string): Promise<Where> {
  const headers = { "a2a-version": "1.0" };
  const { body } = await sendRaw(base, { path: "/.well-known/agent-card.json", headers });
  const { supportedInterfaces } = JSON.parse(body.toString("utf8")) as {
    readonly supportedInterfaces: readonly { protocolBinding: string; url: string; tenant?: string }[];
  };
  const found = supportedInterfaces.find(({ protocolBinding }) => protocolBinding === "GRPC");
  if (found === undefined) throw new Error(`The card at ${base} offers no gRPC.`);
  return { client: clientOf(found.url), tenant: found.tenant };
}

function methodOf(method: Method): PublishedMethod {
  return A2A_V1_SERVICE[method] as PublishedMethod;
}

function encoded({ method, params }: Ask, tenant: string | undefined): Buffer {
  const request = tenant === undefined ? params : { tenant, ...params };
  return methodOf(method).encode(toProto(request));
}

function toMetadata(headers: Headers): Metadata {
  const metadata = new Metadata();
  metadata.set("a2a-version", "1.0");
  // HTTP/2 forbids the blanks around values that HTTP/1.1 ignores.
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value.trim());
  return metadata;
}

/** A subscription that resumes is left as it is: there the extension would do more than number events. */
function askingForNumbers(headers: Headers): Headers {
  if ("last-event-id" in headers) return headers;
  const asked = headers["a2a-extensions"];
  if (asked?.includes(REPLAY) === true) return headers;
  return { ...headers, "a2a-extensions": asked === undefined ? REPLAY : `${asked},${REPLAY}` };
}

function toHeaders(...all: readonly (Metadata | undefined)[]): AnswerHeaders {
  const headers: Record<string, string> = {};
  for (const metadata of all) {
    for (const [name, value] of Object.entries(metadata?.getMap() ?? {})) headers[name] = String(value);
  }
  return headers;
}

function errorOf({ code, details: message, metadata }: ServiceError): WireError {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) throw new Error(`A status without details: ${code} ${message}`);
  const status = readStatusDetails(bytes);
  if (status.code !== code) throw new Error(`The details tell another status than ${code}.`);
  return toWireError(code, message, status.details);
}

/** What stands in JSON although it says nothing, and in bytes goes without saying. */
const ALWAYS_THERE: Readonly<Partial<Record<Method, Plain>>> = {
  ListTasks: { tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 },
  ListTaskPushNotificationConfigs: { configs: [] },
};

function resultOf(method: Method, bytes: Buffer): unknown {
  if (method === "DeleteTaskPushNotificationConfig") return null;
  return { ...ALWAYS_THERE[method], ...fromProto(methodOf(method).decode(bytes)) };
}

interface Unary {
  readonly call: ClientUnaryCall;
  readonly answer: Promise<Answer>;
}

function askOnce(ask: Ask, { client, tenant }: Where): Unary {
  let call: ClientUnaryCall | undefined;
  const answer = new Promise<Answer>((resolve, reject) => {
    let begun: Metadata | undefined;
    let ended: Metadata | undefined;
    const finish = (error: ServiceError | null, bytes?: Buffer): void => {
      try {
        const answered = error === null ? { result: resultOf(ask.method, bytes as Buffer) } : { error: errorOf(error) };
        const text = JSON.stringify(answered);
        resolve({ status: 200, headers: toHeaders(begun, ended, error?.metadata), text, ...answered });
      } catch (unreadable) {
        reject(unreadable);
      }
    };
    const { path } = methodOf(ask.method);
    call = client.makeUnaryRequest(path, pass, pass, encoded(ask, tenant), toMetadata(ask.headers), finish);
    call.on("metadata", (metadata) => {
      begun = metadata;
    });
    call.on("status", ({ metadata }) => {
      ended = metadata;
    });
  });
  return { call: call as ClientUnaryCall, answer };
}

class MessageStream implements OpenStream {
  readonly headers: AnswerHeaders;
  readonly #call: ClientReadableStream<Buffer>;
  readonly #decode: PublishedMethod["decode"];
  readonly #messages: AsyncIterator<Buffer>;
  #cut = false;

  constructor(call: ClientReadableStream<Buffer>, decode: PublishedMethod["decode"], headers: AnswerHeaders) {
    this.#call = call;
    this.#decode = decode;
    this.headers = headers;
    this.#messages = call[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  get cut(): boolean {
    return this.#cut;
  }

  async next(): Promise<NumberedEvent | undefined> {
    try {
      const { done, value } = await this.#messages.next();
      return done === true ? undefined : unnumbered(fromProto(this.#decode(value)));
    } catch {
      this.#cut = true;
      return undefined;
    }
  }

  close(): void {
    this.#call.cancel();
  }
}

/** The number of an event rides in its metadata, and the event is as if it were not there. */
function unnumbered(event: Plain): NumberedEvent {
  const [[kind, bearer] = ["", {}]] = Object.entries(event) as [string, Plain][];
  const { metadata = {}, ...members } = bearer as { readonly metadata?: Plain };
  const { [REPLAY]: mark, ...others } = metadata as { readonly [REPLAY]?: { number: number; empty?: boolean } };
  if (mark === undefined) return { number: undefined, event: event as WireEvent };
  const kept = Object.keys(others).length > 0 || mark.empty === true ? { ...members, metadata: others } : members;
  return { number: mark.number, event: { [kind]: kept } as WireEvent };
}

export const grpc: Binding = {
  name: "gRPC",
  can: { anyJson: false, numbersUnasked: false, agentAndTenant: false },

  async call(ask) {
    const where = await find(ask.base);
    if (!methodOf(ask.method).streams) return askOnce(ask, where).answer;
    const opened = await this.open(ask);
    if ("next" in opened) throw new Error(`${ask.method} was answered with a stream.`);
    return { status: 200, headers: {}, text: JSON.stringify(opened), error: opened };
  },

  async open(ask) {
    const { client, tenant } = await find(ask.base);
    const { path, decode } = methodOf(ask.method);
    const metadata = toMetadata(askingForNumbers(ask.headers));
    const call = client.makeServerStreamRequest(path, pass, pass, encoded(ask, tenant), metadata);
    return new Promise<OpenStream | WireError>((resolve, reject) => {
      call.once("metadata", (begun) => resolve(new MessageStream(call, decode, toHeaders(begun))));
      call.on("error", (error) => {
        try {
          resolve(errorOf(error as ServiceError));
        } catch (unreadable) {
          reject(unreadable);
        }
      });
    });
  },

  begin(ask) {
    let left = false;
    let call: ClientUnaryCall | undefined;
    const answered = find(ask.base).then((where) => {
      const unary = askOnce(ask, where);
      call = unary.call;
      if (left) call.cancel();
      return unary.answer;
    });
    return {
      answered,
      leave() {
        left = true;
        call?.cancel();
      },
    };
  },
};
