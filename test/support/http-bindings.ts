/** Both bindings over HTTP, written by hand from the specification. */
import type { AnswerHeaders, Ask, HttpBinding, HttpForm, Method, NumberedEvent, OpenStream } from "./bindings.ts";
import { EventStreamReader } from "./event-stream-reader.ts";
import { type OpenReply, openRequest, type RawRequest, readAll, sendRaw } from "./raw-http.ts";
import { toWireError } from "./wire-error.ts";
import type { WireDetail, WireEvent } from "./wire-types.ts";

/** One fixed id: that it comes back is checked for every answer and every event. */
const REQUEST_ID = "request-\u2713-1";

const jsonRpc: HttpForm = {
  mediaType: "application/json",

  request: (method, params) => ({
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: REQUEST_ID, method, params }),
  }),

  read(_status, headers, body) {
    if (headers["content-type"] !== "application/json") throw new Error(`Not JSON: ${headers["content-type"]} ${body}`);
    const envelope = JSON.parse(body) as Record<string, unknown>;
    const members = Object.keys(envelope).sort().join();
    if (envelope.jsonrpc !== "2.0") throw new Error(`No JSON-RPC: ${body}`);
    if (members === "id,jsonrpc,result") return { result: sameId(envelope).result };
    if (members !== "error,id,jsonrpc") throw new Error(`Neither result nor error: ${body}`);
    const { code, message, data } = envelope.error as { code: number; message: string; data: WireDetail[] };
    if (envelope.id !== null) sameId(envelope);
    return { error: toWireError(code, message, data) };
  },

  readEvent(data) {
    const envelope = sameId(JSON.parse(data) as Record<string, unknown>);
    if (envelope.error !== undefined) throw new Error(`An error event: ${data}`);
    return envelope.result;
  },
};

function sameId(envelope: Record<string, unknown>): Record<string, unknown> {
  if (envelope.id !== REQUEST_ID) throw new Error(`Another id: ${JSON.stringify(envelope)}`);
  return envelope;
}

const REST_PATHS = {
  SendMessage: "POST /message:send",
  SendStreamingMessage: "POST /message:stream",
  GetTask: "GET /tasks/{id}",
  ListTasks: "GET /tasks",
  CancelTask: "POST /tasks/{id}:cancel",
  SubscribeToTask: "POST /tasks/{id}:subscribe",
  CreateTaskPushNotificationConfig: "POST /tasks/{taskId}/pushNotificationConfigs",
  GetTaskPushNotificationConfig: "GET /tasks/{taskId}/pushNotificationConfigs/{id}",
  ListTaskPushNotificationConfigs: "GET /tasks/{taskId}/pushNotificationConfigs",
  DeleteTaskPushNotificationConfig: "DELETE /tasks/{taskId}/pushNotificationConfigs/{id}",
  GetExtendedAgentCard: "GET /extendedAgentCard",
} as const satisfies Record<Method, string>;

const httpJson: HttpForm = {
  mediaType: "application/a2a+json",

  request(method, params) {
    const { tenant, ...rest } = params as Record<string, unknown>;
    const [verb = "", template = ""] = REST_PATHS[method].split(" ");
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = rest[name];
      delete rest[name];
      return encodeURIComponent(String(value));
    });
    const prefix = tenant === undefined ? "" : `/${encodeURIComponent(String(tenant))}`;
    const headers = { "a2a-version": "1.0" };
    if (verb === "POST") {
      const withType = { ...headers, "content-type": "application/a2a+json" };
      return { method: verb, path: `/rest${prefix}${path}`, headers: withType, body: JSON.stringify(rest) };
    }
    const query = Object.entries(rest).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
    const search = query.length === 0 ? "" : `?${query.join("&")}`;
    return { method: verb, path: `/rest${prefix}${path}${search}`, headers };
  },

  read(status, headers, body) {
    if (status === 204) return { result: null };
    if (headers["content-type"] !== "application/a2a+json") {
      throw new Error(`Not A2A JSON: ${headers["content-type"]} ${body}`);
    }
    const value = JSON.parse(body) as Record<string, unknown>;
    if (status >= 200 && status < 300) return { result: value };
    if (Object.keys(value).join() !== "error") throw new Error(`No error body: ${body}`);
    const error = value.error as { code: number; status: string; message: string; details: WireDetail[] };
    if (error.code !== status) throw new Error(`The body does not tell the status ${status}: ${body}`);
    if (!/^[A-Z_]+$/.test(error.status)) throw new Error(`No status name: ${body}`);
    return { error: toWireError(error.code, error.message, error.details) };
  },

  readEvent: (data) => JSON.parse(data),
};

/** A stream of server-sent events. */
export class EventStream implements OpenStream {
  readonly reader: EventStreamReader;
  readonly headers: AnswerHeaders;
  readonly #form: HttpForm;

  constructor(form: HttpForm, reply: OpenReply) {
    this.#form = form;
    this.headers = reply.headers;
    this.reader = new EventStreamReader(reply);
  }

  get cut(): boolean {
    return this.reader.cut;
  }

  async next(): Promise<NumberedEvent | undefined> {
    const frame = await this.reader.next();
    if (frame === undefined) return undefined;
    const number = frame.id === undefined ? undefined : Number(frame.id);
    return { number, event: this.#form.readEvent(frame.data) as WireEvent };
  }

  close(): void {
    this.reader.close();
  }
}

function overHttp(name: HttpBinding["name"], http: HttpForm): HttpBinding {
  const toRaw = ({ method, params, headers }: Ask): RawRequest => {
    const raw = http.request(method, params);
    return { ...raw, headers: { ...raw.headers, ...headers } };
  };
  return {
    name,
    http,
    can: { anyJson: true, numbersUnasked: true, agentAndTenant: true },

    async call(ask) {
      const { status, headers, body } = await sendRaw(ask.base, toRaw(ask));
      const text = body.toString("utf8");
      return { status, headers, text, ...http.read(status, headers, text) };
    },

    async open(ask) {
      const reply = await openRequest(ask.base, toRaw(ask));
      if (reply.headers["content-type"] === "text/event-stream") return new EventStream(http, reply);
      const text = (await readAll(reply.response)).toString("utf8");
      const { error } = http.read(reply.status, reply.headers, text);
      if (error === undefined) throw new Error(`Neither a stream nor an error: ${text}`);
      return error;
    },

    begin(ask) {
      const cut = new AbortController();
      const raw = toRaw(ask);
      const { method = "POST", headers = {}, body = null } = raw;
      const answered = fetch(`${ask.base}${raw.path ?? ""}`, {
        method,
        headers,
        body: body === null ? null : String(body),
        signal: cut.signal,
      });
      return { answered, leave: () => cut.abort() };
    },
  };
}

export const HTTP_BINDINGS: readonly [HttpBinding, HttpBinding] = [
  overHttp("JSON-RPC", jsonRpc),
  overHttp("HTTP+JSON", httpJson),
];
