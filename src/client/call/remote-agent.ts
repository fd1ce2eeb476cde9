import { randomUUID } from "node:crypto";
import type { ListInput, OperationOf, SendInput, StreamFrame } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { CallOptions, ClientEvent, RemoteAgent, SendText } from "../options.ts";
import type { AgentCaller, CallerOptions } from "./agent-caller.ts";
import { type JoinedSignal, joinSignals } from "./retry.ts";

export function createRemoteAgent(caller: AgentCaller, close: () => Promise<void> = async () => {}): RemoteAgent {
  /** Sends no request and adds no listener before the first item is requested. */
  function iterate<T>(
    options: CallOptions,
    begin: (options: CallerOptions) => AsyncGenerator<readonly T[], void, undefined>,
  ): AsyncIterable<T> {
    let joined: JoinedSignal | undefined;
    async function* batches(): AsyncGenerator<readonly T[], void, undefined> {
      joined = joinSignals([options.signal]);
      try {
        yield* begin({ ...options, signal: joined.signal });
      } finally {
        joined.release();
      }
    }
    return iterateBatches(batches(), () => joined?.abort());
  }

  function follow(operation: OperationOf<"stream" | "subscribe">, given: CallOptions): AsyncIterable<ClientEvent> {
    return iterate(given, async function* (options) {
      for await (const frames of await caller.dispatch(operation, options)) yield frames.map(toClientEvent);
    });
  }

  async function* pages(query: ListInput, options: CallerOptions): AsyncGenerator<readonly Task[], void, undefined> {
    let pageToken = "";
    do {
      const more = pageToken === "" ? {} : { pageToken };
      const page = await caller.dispatch({ kind: "list", ...query, ...more }, options);
      if (page.tasks.length > 0) yield page.tasks;
      if (page.nextPageToken === pageToken) return;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  return {
    card: caller.card,
    get interface() {
      return caller.interface;
    },
    send: (input, options = {}) => caller.dispatch({ kind: "send", ...toSendInput(input) }, options),
    stream: (input, options = {}) => follow({ kind: "stream", ...toSendInput(input) }, options),
    subscribe: (id, { after, ...options } = {}) =>
      follow({ kind: "subscribe", id, ...(after === undefined ? {} : { after }) }, options),
    get: (id, { historyLength, ...options } = {}) =>
      caller.dispatch({ kind: "get", id, ...(historyLength === undefined ? {} : { historyLength }) }, options),
    list: (query = {}, options = {}) => iterate(options, (own) => pages(query, own)),
    listPage: (query = {}, options = {}) => caller.dispatch({ kind: "list", ...query }, options),
    cancel: (id, { metadata, ...options } = {}) =>
      caller.dispatch({ kind: "cancel", id, ...(metadata === undefined ? {} : { metadata }) }, options),
    extendedCard: (options = {}) => caller.dispatch({ kind: "extended-card" }, options),
    createPushConfig: (taskId, config, options = {}) =>
      caller.dispatch({ kind: "push-create", taskId, config }, options),
    getPushConfig: (taskId, id, options = {}) => caller.dispatch({ kind: "push-get", taskId, id }, options),
    listPushConfigs: (taskId, query = {}, options = {}) =>
      caller.dispatch({ kind: "push-list", taskId, ...query }, options),
    deletePushConfig: (taskId, id, options = {}) => caller.dispatch({ kind: "push-delete", taskId, id }, options),
    close,
  };
}

/** The message id is created once, so that a repeated send is the same message. */
function toSendInput(input: SendText): SendInput {
  const { message, ...rest } = typeof input === "string" ? { message: { parts: [{ text: input }] } } : input;
  return { ...rest, message: { messageId: randomUUID(), role: "ROLE_USER", ...message } };
}

function toClientEvent({ event, number }: StreamFrame): ClientEvent {
  return number === undefined ? { event } : { number, event };
}

/**
 * The items of all batches, one by one. Leaving the iteration early calls `abandon` first, which ends a pending read at
 * once.
 */
export function iterateBatches<T>(
  batches: AsyncGenerator<readonly T[], void, undefined>,
  abandon: () => void,
): AsyncIterableIterator<T> {
  let batch: readonly T[] = [];
  let at = 0;
  let finished = false;
  let pulling: Promise<void> | undefined;

  async function pull(): Promise<void> {
    try {
      const { done, value } = await batches.next();
      batch = done === true ? [] : value;
      at = 0;
      if (done === true) finished = true;
    } catch (error) {
      const left = finished;
      finished = true;
      if (!left) throw error;
    } finally {
      pulling = undefined;
    }
  }

  async function nextAfterPull(): Promise<IteratorResult<T, undefined>> {
    while (at >= batch.length && !finished) {
      pulling ??= pull();
      await pulling;
    }
    return take();
  }

  function take(): IteratorResult<T, undefined> {
    if (at >= batch.length || finished) return { done: true, value: undefined };
    return { done: false, value: batch[at++] as T };
  }

  return {
    next() {
      return at < batch.length || finished ? Promise.resolve(take()) : nextAfterPull();
    },
    async return() {
      finished = true;
      abandon();
      await batches.return();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
