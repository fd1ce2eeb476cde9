/** Dispatches operations to one agent. `RemoteAgent` is built on it. */

import type { Abilities } from "../../dialects/contract.ts";
import type { Signal } from "../../model/abort.ts";
import type { AgentCard } from "../../model/card.ts";
import { EXTENSIONS, type Hops, withHops } from "../../model/extensions.ts";
import type { Dispatcher, FrameStream, Operation, OutcomeOf, Outcomes, SendInput } from "../../model/operation.ts";
import type { CallOptions, ChosenInterface } from "../options.ts";
import { currentHops } from "../run-hops.ts";
import type { CallSettings, StreamOperation, UnaryOperation } from "../transport/transport.ts";
import { RemoteTask } from "./remote-task.ts";
import { type CallSetup, callWithRetries, cancelTask, joinSignals } from "./retry.ts";
import type { TaskOwner } from "./task-owner.ts";

export interface CallerOptions extends Omit<CallOptions, "signal"> {
  readonly signal?: Signal;
  /** Of streams, in place of `signal`: a run of this process that the task is worked on for. */
  readonly owner?: TaskOwner;
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

export function createAgentCaller({ setup, card, signal, hops }: AgentCallerOptions): AgentCaller {
  const { endpoints } = setup;
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

  async function withSettings<T>(options: SendOptions, make: (settings: CallSettings) => Promise<T>): Promise<T> {
    const joined = joinSignals([signal, options.signal]);
    try {
      return await make({ ...settingsOf(options), signal: joined.signal });
    } finally {
      joined.release();
    }
  }

  const request = <O extends UnaryOperation>(operation: O, options: SendOptions): Promise<OutcomeOf<O>> =>
    withSettings(options, (settings) => callWithRetries(setup, operation, settings));

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

  function follow(start: StreamOperation, options: SendOptions): Promise<FrameStream> {
    const { owner } = options;
    const signals = [signal, options.signal];
    const settings = settingsOf(options);
    return new RemoteTask({ setup, start, settings, signals, replay, streams: canStream(), owner }).open();
  }

  function perform(operation: Operation, options: CallerOptions): Promise<Outcomes[Operation["kind"]]> {
    switch (operation.kind) {
      case "send": {
        const { input, options: own } = withCallHops(operation, options);
        return request(input, own);
      }
      case "stream": {
        const { input, options: own } = withCallHops(operation, options);
        return follow(input, own);
      }
      case "subscribe":
        return follow(operation, options);
      case "cancel":
        return withSettings(options, (settings) => cancelTask(setup, operation, settings));
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

function settingsOf(options: SendOptions): Omit<CallSettings, "signal"> {
  const { deadline, extensions = [], idempotencyKey, timeoutMs, trace } = options;
  return { timeoutMs, deadline, idempotencyKey, extensions, trace };
}

function declaresExtension(card: AgentCard, uri: string): boolean {
  return card.capabilities.extensions?.some((extension) => extension.uri === uri) ?? false;
}
