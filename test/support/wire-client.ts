/** A caller in one binding: raw answers with a few words for what tests do most. */
import type { Answer, Binding, Method, NumberedEvent, OpenStream, Params, Pending } from "./bindings.ts";
import { EventStream } from "./http-bindings.ts";
import type { Headers, WireError, WireEvent, WireMessage, WirePage, WirePart, WireTask } from "./wire-types.ts";

export type { NumberedEvent } from "./bindings.ts";

let messages = 0;

/** A message of the user, with an id of its own unless one is given. */
export function userMessage(content: string | readonly WirePart[], more: Params = {}): Params {
  const parts = typeof content === "string" ? [{ text: content }] : content;
  return { messageId: `message-${process.pid}-${++messages}`, role: "ROLE_USER", parts, ...more };
}

export class WireClient {
  readonly binding: Binding;
  readonly base: string;

  constructor(binding: Binding, base: string) {
    this.binding = binding;
    this.base = base;
  }

  call(method: Method, params: Params = {}, headers: Headers = {}): Promise<Answer> {
    return this.binding.call({ base: this.base, method, params, headers });
  }

  /** A request that may be left before it is answered. */
  begin(method: Method, params: Params, headers: Headers = {}): Pending {
    return this.binding.begin({ base: this.base, method, params, headers });
  }

  /** A stream, or the error that was answered instead of one. */
  async tryOpen(method: Method, params: Params, headers: Headers = {}): Promise<WireStream | WireError> {
    const opened = await this.binding.open({ base: this.base, method, params, headers });
    return "next" in opened ? new WireStream(opened) : opened;
  }

  async open(method: Method, params: Params, headers: Headers = {}): Promise<WireStream> {
    const opened = await this.tryOpen(method, params, headers);
    if (opened instanceof WireStream) return opened;
    throw new Error(`No stream: ${opened.reason} ${opened.message}`);
  }

  /** The error of a call that must be refused. */
  async refusal(method: Method, params: Params = {}, headers: Headers = {}): Promise<WireError> {
    const { error, text } = await this.call(method, params, headers);
    if (error === undefined) throw new Error(`Not refused: ${text}`);
    return error;
  }

  async #result(method: Method, params: Params, headers: Headers = {}): Promise<unknown> {
    const { result, text } = await this.call(method, params, headers);
    if (result === undefined) throw new Error(`Refused: ${text}`);
    return result;
  }

  /** Sends a message and returns the task it led to. */
  async task(message: Params | string, more: Params = {}, headers: Headers = {}): Promise<WireTask> {
    const params = { message: typeof message === "string" ? userMessage(message) : message, ...more };
    const { task } = (await this.#result("SendMessage", params, headers)) as { task?: WireTask };
    if (task === undefined) throw new Error("Not answered with a task.");
    return task;
  }

  /** Sends a message without waiting for its end. */
  start(message: Params | string, more: Params = {}): Promise<WireTask> {
    return this.task(message, { configuration: { returnImmediately: true }, ...more });
  }

  async message(message: Params | string, headers: Headers = {}): Promise<WireMessage> {
    const params = { message: typeof message === "string" ? userMessage(message) : message };
    const { message: reply } = (await this.#result("SendMessage", params, headers)) as { message?: WireMessage };
    if (reply === undefined) throw new Error("Not answered with a message.");
    return reply;
  }

  async get(id: string, more: Params = {}): Promise<WireTask> {
    return (await this.#result("GetTask", { id, ...more })) as WireTask;
  }

  async list(params: Params = {}): Promise<WirePage> {
    return (await this.#result("ListTasks", params)) as WirePage;
  }

  async cancel(id: string, more: Params = {}): Promise<WireTask> {
    return (await this.#result("CancelTask", { id, ...more })) as WireTask;
  }

  stream(message: Params | string, more: Params = {}, headers: Headers = {}): Promise<WireStream> {
    const params = { message: typeof message === "string" ? userMessage(message) : message, ...more };
    return this.open("SendStreamingMessage", params, headers);
  }

  subscribe(id: string, headers: Headers = {}): Promise<WireStream> {
    return this.open("SubscribeToTask", { id }, headers);
  }

  /** The task once it is in that state, learnt from its stream rather than by asking again and again. */
  async ended(id: string): Promise<WireTask> {
    const opened = await this.tryOpen("SubscribeToTask", { id });
    if (opened instanceof WireStream) await opened.rest();
    return this.get(id);
  }
}

export class WireStream {
  readonly #stream: OpenStream;

  constructor(stream: OpenStream) {
    this.#stream = stream;
  }

  get headers(): OpenStream["headers"] {
    return this.#stream.headers;
  }

  /** It broke before its end. */
  get cut(): boolean {
    return this.#stream.cut;
  }

  /** What server-sent events have besides events. */
  get reader(): EventStream["reader"] {
    if (this.#stream instanceof EventStream) return this.#stream.reader;
    throw new Error("These are no server-sent events.");
  }

  next(): Promise<NumberedEvent | undefined> {
    return this.#stream.next();
  }

  /** The next event, which must be there. */
  async event(): Promise<WireEvent> {
    const next = await this.next();
    if (next === undefined) throw new Error("The stream has ended.");
    return next.event;
  }

  /** The task in the first event. */
  async task(): Promise<WireTask> {
    const { task } = await this.event();
    if (task === undefined) throw new Error("The event is no task.");
    return task;
  }

  async rest(): Promise<NumberedEvent[]> {
    const events: NumberedEvent[] = [];
    for (let next = await this.next(); next !== undefined; next = await this.next()) events.push(next);
    return events;
  }

  close(): void {
    this.#stream.close();
  }
}

/** The states an event stream went through. */
export function statesOf(events: readonly NumberedEvent[]): string[] {
  return events.flatMap(({ event }) => {
    const status = event.task?.status ?? event.statusUpdate?.status;
    return status === undefined ? [] : [status.state.replace("TASK_STATE_", "")];
  });
}
