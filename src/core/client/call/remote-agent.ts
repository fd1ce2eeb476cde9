import { omitUndefined } from "../../model/json.ts";
import type { ListInput, OperationOf, SendOutcome, StreamFrame } from "../../model/operation.ts";
import { rejectUnknownKeys } from "../../model/suggestions.ts";
import type { Task } from "../../model/task.ts";
import { requireId, toReplyTarget, toRequest, toSendInput } from "../content.ts";
import type { CallOptions, ClientEvent, RemoteAgent, ReplyOptions, SendContent, SendOptions } from "../options.ts";
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

  function follow(
    toOperation: () => Promise<OperationOf<"stream" | "subscribe">>,
    given: CallOptions,
  ): AsyncIterable<ClientEvent> {
    return iterate(given, async function* (options) {
      for await (const frames of await caller.dispatch(await toOperation(), options)) yield frames.map(toClientEvent);
    });
  }

  async function send(what: string, content: SendContent, options: SendOptions): Promise<SendOutcome> {
    const { call, files, request } = prepare(what, content, options);
    return caller.dispatch({ kind: "send", ...(await toSendInput(request, files)) }, call);
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
    send: async (content, options = {}) => send("send", content, checkOptions("send", options, SEND_OPTIONS)),
    reply: async (to, content, options = {}) => {
      const own = checkOptions("reply", options, REPLY_OPTIONS);
      return send("reply", content, { ...own, ...toReplyTarget(to) });
    },
    stream: (content, options = {}) => {
      const { call, files, request } = prepare("stream", content, checkOptions("stream", options, SEND_OPTIONS));
      return follow(async () => ({ kind: "stream", ...(await toSendInput(request, files)) }), call);
    },
    subscribe: (id, options = {}) => {
      const { after, ...call } = checkOptions("subscribe", options, [...CALL_OPTIONS, "after"]);
      const operation = { kind: "subscribe", id: requireId("subscribe", id), ...omitUndefined({ after }) } as const;
      return follow(async () => operation, call);
    },
    get: async (id, options = {}) => {
      const { historyLength, ...call } = checkOptions("get", options, [...CALL_OPTIONS, "historyLength"]);
      return caller.dispatch({ kind: "get", id: requireId("get", id), ...omitUndefined({ historyLength }) }, call);
    },
    list: (query = {}, options = {}) => {
      rejectUnknownKeys("list", query, LIST_QUERY);
      return iterate(checkOptions("list", options), (own) => pages(query, own));
    },
    listPage: async (query = {}, options = {}) => {
      rejectUnknownKeys("listPage", query, LIST_QUERY);
      return caller.dispatch({ kind: "list", ...query }, checkOptions("listPage", options));
    },
    cancel: async (id, options = {}) => {
      const { metadata, ...call } = checkOptions("cancel", options, [...CALL_OPTIONS, "metadata"]);
      return caller.dispatch({ kind: "cancel", id: requireId("cancel", id), ...omitUndefined({ metadata }) }, call);
    },
    extendedCard: async (options = {}) =>
      caller.dispatch({ kind: "extended-card" }, checkOptions("extendedCard", options)),
    createPushConfig: async (taskId, config, options = {}) =>
      caller.dispatch({ kind: "push-create", taskId, config }, checkOptions("createPushConfig", options)),
    getPushConfig: async (taskId, id, options = {}) =>
      caller.dispatch({ kind: "push-get", taskId, id }, checkOptions("getPushConfig", options)),
    listPushConfigs: async (taskId, query = {}, options = {}) =>
      caller.dispatch({ kind: "push-list", taskId, ...query }, checkOptions("listPushConfigs", options)),
    deletePushConfig: async (taskId, id, options = {}) =>
      caller.dispatch({ kind: "push-delete", taskId, id }, checkOptions("deletePushConfig", options)),
    close,
  };
}

const CALL_OPTION_NAMES = {
  signal: true,
  timeoutMs: true,
  idempotencyKey: true,
  extensions: true,
  hops: true,
  trace: true,
} satisfies Record<keyof CallOptions, true>;
const REPLY_OPTION_NAMES = { ...CALL_OPTION_NAMES, files: true, metadata: true } satisfies Record<
  keyof ReplyOptions,
  true
>;
const SEND_OPTION_NAMES = { ...REPLY_OPTION_NAMES, taskId: true, contextId: true } satisfies Record<
  keyof SendOptions,
  true
>;
const LIST_QUERY_NAMES = {
  contextId: true,
  status: true,
  pageSize: true,
  pageToken: true,
  historyLength: true,
  statusTimestampAfter: true,
  includeArtifacts: true,
  firstPageOnly: true,
} satisfies Record<keyof ListInput, true>;

const CALL_OPTIONS = Object.keys(CALL_OPTION_NAMES);
const REPLY_OPTIONS = Object.keys(REPLY_OPTION_NAMES);
const SEND_OPTIONS = Object.keys(SEND_OPTION_NAMES);
const LIST_QUERY = Object.keys(LIST_QUERY_NAMES);

/** A misspelled option would otherwise be ignored: a message that was meant to answer would begin a new task. */
function checkOptions<T extends object>(what: string, options: T, known: readonly string[] = CALL_OPTIONS): T {
  rejectUnknownKeys(what, options, known);
  return options;
}

function prepare(what: string, content: SendContent, options: SendOptions) {
  const { contextId, files, metadata, taskId, ...call } = options;
  return { request: toRequest(what, content, options), files, call };
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
