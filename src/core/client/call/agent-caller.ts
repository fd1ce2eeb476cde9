/** Dispatches operations to one agent and resumes streams after broken connections. `RemoteAgent` is built on it. */

import type { Abilities } from "../../dialects/contract.ts";
import type { Abort, Signal } from "../../model/abort.ts";
import type { AgentCard } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS, type Hops, withHops } from "../../model/extensions.ts";
import type {
  Dispatcher,
  FrameStream,
  Operation,
  OperationOf,
  OutcomeOf,
  Outcomes,
  SendInput,
  SendOutcome,
  StreamFrame,
} from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import { ConnectionError, failedBeforeSending } from "../errors.ts";
import type { CallOptions, ChosenInterface } from "../options.ts";
import { currentHops } from "../run-hops.ts";
import type { CallSettings, UnaryOperation } from "../transport/transport.ts";
import { followTask } from "./follow.ts";
import { type CallSetup, callWithRetries, isTransient, type JoinedSignal, joinSignals, pollTask } from "./retry.ts";

export interface CallerOptions extends Omit<CallOptions, "signal"> {
  readonly signal?: Signal;
  /** In place of `signal`, for streams: belongs to this call alone, and is also aborted when the stream is left. */
  readonly controller?: Abort;
  /** Of a subscription: the task was followed before, so whatever becomes of its stream, the task is read to its end. */
  readonly continues?: boolean;
}

/** Rejects with `ProtocolError` for errors from the agent and `ConnectionError` for connection failures. */
export interface AgentCaller extends Dispatcher<CallerOptions> {
  readonly card: AgentCard;
  /** The interface in use; replaced by another when it fails. */
  readonly interface: ChosenInterface;
  readonly can: Abilities;
  /** The agent recognises a repeated send by its idempotency key. */
  readonly recognizesRepeats: boolean;
}

interface AgentCallerOptions {
  readonly card: AgentCard;
  readonly setup: CallSetup;
  readonly signal: AbortSignal | undefined;
  /** Default for calls without hops of their own. */
  readonly hops?: Hops | undefined;
}

interface SendOptions extends CallerOptions {
  /** When the result is no longer waited for, in milliseconds since the epoch. */
  readonly deadline?: number | undefined;
}

/** Many answers take less than the usual interval between two looks at a task. */
const FIRST_POLL_MS = 100;

type Batches = AsyncGenerator<readonly StreamFrame[], void, undefined>;

export function createAgentCaller({ setup, card, signal, hops }: AgentCallerOptions): AgentCaller {
  const { endpoints, notify } = setup;
  const replay = declaresExtension(card, EXTENSIONS.replay);
  const knowsHops = declaresExtension(card, EXTENSIONS.hops);

  /**
   * Omitted if the dialect cannot send them, because reporting a loss would gain nothing; reduced to the count for an
   * agent without the extension, which has no use for the addresses of others. The deadline is for every agent.
   */
  function hopsFor(options: CallerOptions): Hops | undefined {
    const came = options.hops ?? hops ?? currentHops();
    if (came === undefined || !endpoints.can.metadata) return undefined;
    if (knowsHops) return came;
    const { root: _, ...rest } = came;
    return { ...rest, ancestors: [], hops: Math.max(came.hops, came.ancestors.length - 1) };
  }

  async function request<O extends UnaryOperation>(
    operation: O,
    options: SendOptions,
    onRepeat?: () => void,
  ): Promise<OutcomeOf<O>> {
    const joined = joinSignals([signal, options.signal]);
    try {
      return await callWithRetries(setup, operation, settingsOf(options, joined), onRepeat);
    } finally {
      joined.release();
    }
  }

  /** Resolves once the first frames have arrived, so that a rejected call rejects like one without a stream. */
  async function open(options: SendOptions, begin: (settings: CallSettings) => Batches): Promise<FrameStream> {
    const joined = joinSignals([signal, options.signal], options.controller);
    const batches = begin(settingsOf(options, joined));
    let first: Promise<IteratorResult<readonly StreamFrame[], void>> | undefined = batches.next();
    try {
      await first;
    } catch (error) {
      joined.release();
      throw error;
    }
    let isReading = false;
    const iterator: AsyncIterator<readonly StreamFrame[], undefined> = {
      async next() {
        const next = first ?? batches.next();
        first = undefined;
        isReading = true;
        try {
          const step = await next;
          if (step.done !== true) return step;
        } catch (error) {
          joined.release();
          throw error;
        } finally {
          isReading = false;
        }
        joined.release();
        return { done: true, value: undefined };
      },
      async return() {
        // Ends a pending read at once; its failure is ignored.
        if (isReading) joined.abort();
        else joined.release();
        await batches.return().catch(() => {});
        return { done: true, value: undefined };
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }

  /** Metadata of an extension is only valid if the extension is activated. */
  function withCallHops<T extends SendInput>(input: T, options: CallerOptions): { input: T; options: SendOptions } {
    const came = hopsFor(options);
    if (came === undefined) return { input, options };
    return {
      input: { ...input, metadata: withHops(input.metadata, came, Date.now()) },
      options: {
        ...options,
        extensions: [...(options.extensions ?? []), EXTENSIONS.hops],
        deadline: came.deadline,
      },
    };
  }

  function canStream(): boolean {
    const { operations, streaming } = endpoints.can;
    return card.capabilities.streaming !== false && streaming && operations.stream;
  }

  function stream(operation: OperationOf<"stream">, given: CallerOptions): Promise<FrameStream> {
    const { input, options } = withCallHops(operation, given);
    if (!canStream()) return open(options, (settings) => sendInstead(input, settings));
    return open(options, (settings) => followTask({ setup, start: input, settings, replay }));
  }

  function subscribe(start: OperationOf<"subscribe">, options: CallerOptions): Promise<FrameStream> {
    const { continues } = options;
    if (continues === true && !canStream() && endpoints.can.operations.get) {
      return open(options, (settings) => pollTask({ setup, settings, id: start.id, observes: true, continues }));
    }
    return open(options, (settings) => followTask({ setup, start, settings, replay, continues }));
  }

  /**
   * An agent that does not stream is asked to answer at once and then polled: the id of the task is known while the agent
   * works on it, so that the task can be cancelled and found again.
   */
  async function* sendInstead(input: SendInput, settings: CallSettings): Batches {
    notify({ kind: "fallback", message: "The agent does not stream; polling its task." });
    const { chosenIds, operations, returnImmediately } = endpoints.can;
    const configuration = { ...input.configuration, returnImmediately: true };
    const sent = returnImmediately && operations.get ? { ...input, configuration } : input;
    // Only an agent that answers late needs the time that was given for the answer.
    const polling = { setup, settings: { ...settings, timeoutMs: undefined }, observes: false };
    let outcome: SendOutcome;
    try {
      outcome = await callWithRetries(setup, { ...sent, kind: "send" }, settings);
    } catch (error) {
      const id = input.message.taskId ?? (chosenIds ? input.chosenId : undefined);
      const mayHaveArrived = ConnectionError.is(error) && isTransient(error) && !failedBeforeSending(error);
      if (id === undefined || !mayHaveArrived || settings.signal.aborted) throw error;
      yield* pollTask({ ...polling, id, continues: true });
      return;
    }
    yield [{ event: outcome, json: JSON.stringify(outcome) }];
    if ("message" in outcome) return;
    const { id, status } = outcome.task;
    if (isTerminal(status.state) || isInterrupted(status.state) || !operations.get) return;
    yield* pollTask({ ...polling, id, known: outcome.task, startMs: FIRST_POLL_MS });
  }

  async function cancel(operation: OperationOf<"cancel">, options: CallerOptions): Promise<Task> {
    let repeated = false;
    const onRepeat = (): void => {
      repeated = true;
    };
    try {
      return await request(operation, options, onRepeat);
    } catch (error) {
      // The first attempt may have succeeded, with only its response lost.
      if (!repeated || !ProtocolError.is(error) || error.code !== "TASK_NOT_CANCELABLE") throw error;
      const task = await request({ kind: "get", id: operation.id }, options);
      if (task.status.state !== "TASK_STATE_CANCELED") throw error;
      return task;
    }
  }

  function perform(operation: Operation, options: CallerOptions): Promise<Outcomes[Operation["kind"]]> {
    switch (operation.kind) {
      case "send": {
        const { input, options: own } = withCallHops(operation, options);
        return request(input, own);
      }
      case "stream":
        return stream(operation, options);
      case "subscribe":
        return subscribe(operation, options);
      case "cancel":
        return cancel(operation, options);
      default:
        return request(operation, options);
    }
  }

  return {
    card,
    recognizesRepeats: declaresExtension(card, EXTENSIONS.idempotency),
    get interface() {
      return endpoints.interface;
    },
    get can() {
      return endpoints.can;
    },
    // `perform` ties an outcome to its operation, which the compiler cannot follow through a union.
    dispatch: <O extends Operation>(operation: O, options: CallerOptions) =>
      perform(operation, options) as Promise<OutcomeOf<O>>,
  };
}

function settingsOf(options: SendOptions, { signal }: JoinedSignal): CallSettings {
  const { deadline, extensions = [], idempotencyKey, timeoutMs, trace } = options;
  return { signal, timeoutMs, deadline, idempotencyKey, extensions, trace };
}

function declaresExtension(card: AgentCard, uri: string): boolean {
  return card.capabilities.extensions?.some((extension) => extension.uri === uri) ?? false;
}
