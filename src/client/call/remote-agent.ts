import { randomUUID } from "node:crypto";
import type { AgentCard } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS, type Hops, NO_HOPS, withHops } from "../../model/extensions.ts";
import type { ListInput, OutcomeOf, SendInput } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import type { CallOptions, ClientEvent, RemoteAgent, SendText } from "../options.ts";
import { currentHops } from "../run-hops.ts";
import type { CallSettings, StreamOperation, UnaryOperation } from "../transport/transport.ts";
import { type AgentCaller, pollTask } from "./agent-caller.ts";
import { followTask } from "./follow.ts";
import { type JoinedSignal, joinSignals } from "./retry.ts";

interface RemoteAgentSetup {
  readonly card: AgentCard;
  readonly caller: AgentCaller;
  /** Ends everything the agent is asked. */
  readonly signal: AbortSignal | undefined;
  /** Of calls that name none themselves. */
  readonly hops?: Hops | undefined;
}

export function createRemoteAgent({ caller, card, signal, hops }: RemoteAgentSetup): RemoteAgent {
  const replay = declaresExtension(card, EXTENSIONS.replay);
  const knowsHops = declaresExtension(card, EXTENSIONS.hops);

  /**
   * How the run that makes this call came about. Where they could not be sent nothing would be gained by a declared
   * loss, and an agent that does not know the extension has no use for the addresses of others.
   */
  function inheritedHops(): Hops | undefined {
    const came = currentHops();
    if (came === undefined || !caller.can.metadata) return undefined;
    return knowsHops ? came : { ...NO_HOPS, hops: Math.max(came.hops, came.ancestors.length - 1) };
  }

  async function ask<O extends UnaryOperation>(
    operation: O,
    options: CallOptions = {},
    onRepeat?: () => void,
  ): Promise<OutcomeOf<O>> {
    const joined = joinSignals(signal, options.signal);
    try {
      return await caller.call(operation, settingsOf(options, joined), onRepeat);
    } finally {
      joined.release();
    }
  }

  function followed(start: StreamOperation, options: CallOptions = {}) {
    return iterate(options, (settings) => followTask({ caller, start, settings, replay }));
  }

  /** Nothing is asked, and nothing is listened to, before the first event is wanted. */
  function iterate<T>(
    options: CallOptions,
    begin: (settings: CallSettings) => AsyncGenerator<readonly T[], void, undefined>,
  ): AsyncIterable<T> {
    let joined: JoinedSignal | undefined;
    async function* batches(): AsyncGenerator<readonly T[], void, undefined> {
      joined = joinSignals(signal, options.signal);
      try {
        yield* begin(settingsOf(options, joined));
      } finally {
        joined.release();
      }
    }
    return iterateBatches(batches(), () => joined?.abort());
  }

  async function* sendInstead(input: SendInput, settings: CallSettings) {
    caller.setup.notify({ kind: "fallback", message: "The agent does not stream; its whole answer is waited for." });
    const outcome = await caller.call({ kind: "send", ...input }, settings);
    const event: ClientEvent = { event: outcome };
    yield [event];
    if ("message" in outcome) return;
    const { id, status } = outcome.task;
    if (isTerminal(status.state) || isInterrupted(status.state) || !caller.can.operations.get) return;
    yield* pollTask({ caller, settings, id, observes: false, known: outcome.task });
  }

  async function* pages(query: ListInput, settings: CallSettings): AsyncGenerator<readonly Task[], void, undefined> {
    let pageToken = "";
    do {
      const page = await caller.call({ kind: "list", ...query, ...(pageToken === "" ? {} : { pageToken }) }, settings);
      if (page.tasks.length > 0) yield page.tasks;
      if (page.nextPageToken === pageToken) return;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  return {
    card,
    get interface() {
      return caller.interface;
    },
    send: (input, options) => {
      const came = options?.hops ?? hops ?? inheritedHops();
      return ask({ kind: "send", ...toSendInput(input, came) }, withHopsExtension(came, options));
    },
    stream(input, given = {}) {
      const came = given.hops ?? hops ?? inheritedHops();
      const options = withHopsExtension(came, given) ?? given;
      const prepared = toSendInput(input, came);
      const { operations, streaming } = caller.can;
      if (card.capabilities.streaming === false || !streaming || !operations.stream) {
        return iterate(options, (settings) => sendInstead(prepared, settings));
      }
      return followed({ kind: "stream", ...prepared }, options);
    },
    subscribe(id, { after, ...options } = {}) {
      return followed({ kind: "subscribe", id, ...(after === undefined ? {} : { after }) }, options);
    },
    get: (id, { historyLength, ...options } = {}) =>
      ask({ kind: "get", id, ...(historyLength === undefined ? {} : { historyLength }) }, options),
    list: (query = {}, options = {}) => iterate(options, (settings) => pages(query, settings)),
    listPage: (query = {}, options) => ask({ kind: "list", ...query }, options),
    async cancel(id, { metadata, ...options } = {}) {
      let repeated = false;
      const onRepeat = (): void => {
        repeated = true;
      };
      try {
        return await ask({ kind: "cancel", id, ...(metadata === undefined ? {} : { metadata }) }, options, onRepeat);
      } catch (error) {
        // The first try may have done it, and only its answer was lost.
        if (!repeated || !ProtocolError.is(error) || error.code !== "TASK_NOT_CANCELABLE") throw error;
        const task = await ask({ kind: "get", id }, options);
        if (task.status.state !== "TASK_STATE_CANCELED") throw error;
        return task;
      }
    },
    extendedCard: (options) => ask({ kind: "extended-card" }, options),
    createPushConfig: (taskId, config, options) => ask({ kind: "push-create", taskId, config }, options),
    getPushConfig: (taskId, id, options) => ask({ kind: "push-get", taskId, id }, options),
    listPushConfigs: (taskId, query = {}, options) => ask({ kind: "push-list", taskId, ...query }, options),
    deletePushConfig: (taskId, id, options) => ask({ kind: "push-delete", taskId, id }, options),
  };
}

function settingsOf(options: CallOptions, { signal }: JoinedSignal): CallSettings {
  const { extensions = [], idempotencyKey, timeoutMs } = options;
  return { signal, timeoutMs, idempotencyKey, extensions };
}

function declaresExtension(card: AgentCard, uri: string): boolean {
  return card.capabilities.extensions?.some((extension) => extension.uri === uri) ?? false;
}

/** Metadata of an extension counts only where the extension is asked for. */
function withHopsExtension(came: Hops | undefined, options: CallOptions | undefined): CallOptions | undefined {
  if (came === undefined) return options;
  return { ...options, extensions: [...(options?.extensions ?? []), EXTENSIONS.hops] };
}

/** The id is made once, so that a repeated send is the same message. */
function toSendInput(input: SendText, came: Hops | undefined): SendInput {
  const { message, ...rest } = typeof input === "string" ? { message: { parts: [{ text: input }] } } : input;
  return {
    ...rest,
    ...(came === undefined ? undefined : { metadata: withHops(rest.metadata, came) }),
    message: { messageId: randomUUID(), role: "ROLE_USER", ...message },
  };
}

/** Batches inside, single events at the edge: a promise is only made where one is asked for. */

/** Leaving it early calls `abandon` first, so that a read that is under way ends at once. */
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
