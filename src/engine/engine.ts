import { networkOf } from "../model/address.ts";
import type { Caller } from "../model/caller.ts";
import { ProtocolError } from "../model/errors.ts";
import { hopsIn, refuseLoop } from "../model/hops.ts";
import type { Call, Operation, OutcomeOf, Outcomes } from "../model/operation.ts";
import type { Agent } from "./agent.ts";
import { Cancelling } from "./cancelling.ts";
import { Housekeeping } from "./housekeeping.ts";
import { type EngineContext, type EngineOptions, toContext } from "./options.ts";
import { PushConfigs } from "./push-configs.ts";
import { PushDelivery } from "./push-delivery.ts";
import { RunQueue } from "./queue.ts";
import { Reading } from "./reading.ts";
import { Recovery } from "./recovery.ts";
import { Runner, type ServedAgent } from "./runner.ts";
import { Sending } from "./sending.ts";
import { Shares } from "./shares.ts";

/** Runs agents and answers every operation on their tasks. Knows no dialect and no carrier. */
export class Engine {
  readonly #context: EngineContext;
  readonly #agents = new Map<string, ServedAgent>();
  readonly #runner: Runner;
  readonly #pushConfigs: PushConfigs;
  readonly #pushDelivery: PushDelivery | undefined;
  readonly #sending: Sending;
  readonly #reading: Reading;
  readonly #cancelling: Cancelling;
  readonly #recovery: Recovery;
  readonly #housekeeping: Housekeeping;
  readonly #streamsOfOwners: Shares;
  readonly #streamsOfAddresses: Shares;
  #closing = false;
  #closed = false;

  constructor(options: EngineOptions, agents: ReadonlyMap<string, Agent>) {
    this.#context = toContext(options);
    this.#streamsOfOwners = new Shares(this.#context.limits.streamsPerOwner);
    this.#streamsOfAddresses = new Shares(this.#context.limits.streamsPerAddress);
    for (const [name, agent] of agents) this.#agents.set(name, { name, agent, queue: new RunQueue(agent.concurrency) });
    this.#runner = new Runner(this.#context);
    this.#pushConfigs = new PushConfigs(this.#context, this.#runner);
    const { pushSender } = options;
    if (pushSender !== undefined && this.#context.push) {
      this.#pushDelivery = new PushDelivery(this.#context, this.#runner, pushSender);
    }
    this.#sending = new Sending(this.#context, this.#runner, this.#pushConfigs);
    this.#reading = new Reading(this.#context, this.#runner);
    this.#cancelling = new Cancelling(this.#context, this.#runner, this.#reading);
    this.#recovery = new Recovery(this.#context, this.#runner, this.#agents);
    this.#housekeeping = new Housekeeping(this.#context);
  }

  /** Takes up what an earlier process left, and from then on whatever comes. */
  async start(): Promise<void> {
    await this.#recovery.start();
    this.#housekeeping.start();
    this.#pushDelivery?.start();
  }

  /** New messages go to the new definition; turns under way finish with the old one. */
  replace(name: string, agent: Agent): void {
    const served = this.#agents.get(name);
    if (served === undefined) return;
    served.agent = agent;
    served.queue.resize(agent.concurrency);
  }

  agent(name: string): Agent | undefined {
    return this.#agents.get(name)?.agent;
  }

  /** Whether callers may ask to be told of their tasks' events. */
  get push(): boolean {
    return this.#context.push;
  }

  /** The dialect a task was made over; undefined for whoever may not see the task. */
  async originOf(agentName: string, taskId: string, caller: Caller): Promise<string | undefined> {
    const head = await this.#context.store.head(taskId);
    return head?.agent === agentName && head.owner === caller.owner ? head.dialect : undefined;
  }

  /** Tasks, queues and streams at this moment, for metrics. */
  get load(): { readonly tasks: number; readonly queued: number; readonly streams: number } {
    let queued = 0;
    for (const { queue } of this.#agents.values()) queued += queue.waiting;
    return { tasks: this.#runner.size, queued, streams: this.#streamsOfOwners.total };
  }

  /** Push configs that are being told something at this moment. */
  get pushes(): number {
    return this.#pushDelivery?.size ?? 0;
  }

  /** Refuses new messages from now on. Resolves when all runs have ended, or after `graceMs` with those left cut off. */
  async drain(graceMs: number): Promise<void> {
    this.#closing = true;
    let stopTimer = () => {};
    const late = new Promise<void>((resolve) => {
      stopTimer = this.#context.clock.after(graceMs, resolve);
    });
    await Promise.race([this.#runner.idle(), late]);
    stopTimer();
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#closed = true;
    this.#recovery.stop();
    this.#housekeeping.stop();
    this.#runner.abandonAll(new ProtocolError("UNAVAILABLE", "The server is shutting down.", { retryAfter: 1 }));
    this.#runner.readers.close();
    await this.#pushDelivery?.stop();
    await this.#context.store.close();
  }

  dispatch<O extends Operation>(agentName: string, operation: O, call: Call): Promise<OutcomeOf<O>> {
    return this.#perform(agentName, operation, call) as Promise<OutcomeOf<O>>;
  }

  #perform(agentName: string, operation: Operation, call: Call): Promise<Outcomes[Operation["kind"]]> {
    if (this.#closed) return refuse("UNAVAILABLE", "The server is shutting down.");
    const served = this.#agents.get(agentName);
    if (served === undefined) return refuse("METHOD_NOT_FOUND", "There is no such agent.");
    const required = missingExtension(served.agent, call);
    if (required !== undefined) return refuse("EXTENSION_SUPPORT_REQUIRED", `This agent requires ${required}.`);
    switch (operation.kind) {
      case "send":
        return this.#refusesSend(operation) ?? this.#withRoom(call, () => this.#sending.send(served, operation, call));
      case "stream":
        return (
          this.#refusesSend(operation) ??
          refusesStreams(served.agent) ??
          this.#streaming(call, (onEnd) =>
            this.#withRoom(call, () => this.#sending.stream(served, operation, call, onEnd)),
          )
        );
      case "get":
        return this.#reading.get(served, operation.id, operation.historyLength, call);
      case "list":
        return this.#reading.list(served, operation, call);
      case "cancel":
        return this.#cancelling.cancel(served, operation.id, call);
      case "subscribe":
        return (
          refusesStreams(served.agent) ??
          this.#streaming(call, (onEnd) => this.#reading.subscribe(served, operation.id, operation.after, call, onEnd))
        );
      case "push-create":
        return this.#refusesPush() ?? this.#withRoom(call, () => this.#pushConfigs.create(served, operation, call));
      case "push-get":
        return this.#refusesPush() ?? this.#pushConfigs.get(served, operation, call);
      case "push-list":
        return this.#refusesPush() ?? this.#pushConfigs.list(served, operation, call);
      case "push-delete":
        return this.#refusesPush() ?? this.#pushConfigs.delete(served, operation, call);
      case "extended-card":
        return refuse("UNSUPPORTED_OPERATION", "The engine has no cards.");
    }
  }

  #refusesSend(operation: Extract<Operation, { kind: "send" | "stream" }>): Promise<never> | undefined {
    if (this.#closing) return refuse("UNAVAILABLE", "The server is shutting down.");
    if (operation.metadata !== undefined) {
      try {
        refuseLoop(hopsIn(operation.metadata), this.#context.limits.hops);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    return operation.configuration?.taskPushNotificationConfig === undefined ? undefined : this.#refusesPush();
  }

  #refusesPush(): Promise<never> | undefined {
    if (this.#context.push) return undefined;
    return refuse("PUSH_NOTIFICATION_NOT_SUPPORTED", "This agent does not send push notifications.");
  }

  /** Does what brings something new into the store, if the owner has room there. Not asked where there is no limit. */
  #withRoom<T>({ caller: { owner } }: Call, work: () => Promise<T>): Promise<T> {
    const { storedBytesPerOwner: limit } = this.#context.limits;
    if (limit === undefined) return work();
    return this.#context.store.storedBytes(owner).then((bytes) => {
      if (bytes < limit) return work();
      throw new ProtocolError("RESOURCE_EXHAUSTED", `Your tasks take up more than the ${limit} bytes you may keep.`, {
        metadata: { storedBytes: String(bytes), limit: String(limit) },
      });
    });
  }

  /** Counts a stream against its owner and its address from before it opens until it ends. */
  async #streaming<T>(call: Call, open: (onEnd: () => void) => Promise<T>): Promise<T> {
    const { owner } = call.caller;
    const address = call.caller.address && networkOf(call.caller.address);
    if (!this.#streamsOfOwners.take(owner)) throw tooManyStreams("Too many of your streams are open.");
    if (!this.#streamsOfAddresses.take(address)) {
      this.#streamsOfOwners.release(owner);
      throw tooManyStreams("Too many streams are open from your address.");
    }
    let ended = false;
    const onEnd = () => {
      if (ended) return;
      ended = true;
      this.#streamsOfOwners.release(owner);
      this.#streamsOfAddresses.release(address);
    };
    try {
      return await open(onEnd);
    } catch (error) {
      onEnd();
      throw error;
    }
  }
}

function tooManyStreams(message: string): ProtocolError {
  return new ProtocolError("RESOURCE_EXHAUSTED", message, { retryAfter: 5 });
}

function refusesStreams(agent: Agent): Promise<never> | undefined {
  if (agent.profile.streaming) return undefined;
  return refuse("UNSUPPORTED_OPERATION", "This agent does not stream.");
}

function missingExtension(agent: Agent, call: Call): string | undefined {
  return agent.profile.extensions.find(({ uri, required }) => required === true && !call.extensions.includes(uri))?.uri;
}

function refuse(code: ConstructorParameters<typeof ProtocolError>[0], message: string): Promise<never> {
  return Promise.reject(new ProtocolError(code, message));
}
