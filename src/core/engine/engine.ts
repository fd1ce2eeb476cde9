import { type Caller, toNetworkPrefix } from "../model/caller.ts";
import type { AgentProfile } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import { checkHopLimit, type Hops, readHops, withHops } from "../model/extensions.ts";
import type { CallContext, Dispatcher, Operation, OutcomeOf, Outcomes } from "../model/operation.ts";
import type { Records } from "../model/records.ts";
import { statusText } from "../model/status-texts.ts";
import { WEBHOOK_ROUTE } from "../store/contract.ts";
import type { Agent } from "./agent.ts";
import { QuotaCounter, RunQueue, type ServedAgent } from "./concurrency.ts";
import { Deliveries } from "./deliveries/deliveries.ts";
import type { DeliveryRoute } from "./deliveries/route-worker.ts";
import { createWebhookRoute } from "./deliveries/webhook-route.ts";
import { HandOver } from "./hand-over.ts";
import { Housekeeping, Recovery } from "./maintenance.ts";
import { CancelHandler } from "./operations/cancel-task.ts";
import { PushConfigs } from "./operations/push-configs.ts";
import { SendHandler } from "./operations/send-message.ts";
import { TaskQueries } from "./operations/task-queries.ts";
import { type EngineContext, type EngineOptions, toEngineContext } from "./options.ts";
import { createRecords } from "./records.ts";
import { Runner } from "./runs/runner.ts";

/** An agent as the engine serves it. */
interface EngineAgent extends Dispatcher {
  readonly profile: AgentProfile;
}

/** For the store to take what a node that ends hands over. */
const HAND_OVER_MS = 5_000;

/** Runs agents and answers every operation on their tasks. Knows no dialect and no carrier. */
export class Engine {
  readonly #context: EngineContext;
  readonly #agents = new Map<string, ServedAgent>();
  readonly #runner: Runner;
  readonly #pushConfigs: PushConfigs;
  readonly #deliveries: Deliveries;
  readonly #records: Records;
  readonly #sending: SendHandler;
  readonly #reading: TaskQueries;
  readonly #cancelling: CancelHandler;
  readonly #recovery: Recovery;
  readonly #handOver: HandOver;
  readonly #housekeeping: Housekeeping;
  readonly #streamsOfOwners: QuotaCounter;
  readonly #streamsOfAddresses: QuotaCounter;
  #closing = false;
  #closed = false;

  constructor(options: EngineOptions, agents: ReadonlyMap<string, Agent>) {
    this.#context = toEngineContext(options);
    this.#streamsOfOwners = new QuotaCounter(this.#context.limits.streamsPerOwner);
    this.#streamsOfAddresses = new QuotaCounter(this.#context.limits.streamsPerAddress);
    for (const [name, agent] of agents) this.#agents.set(name, { name, agent, queue: new RunQueue(agent.concurrency) });
    this.#runner = new Runner(this.#context);
    this.#deliveries = new Deliveries(this.#context, this.#runner);
    this.#pushConfigs = new PushConfigs(this.#context, this.#runner, this.#deliveries);
    const { pushSender } = options;
    if (pushSender !== undefined && this.#context.push) {
      this.#deliveries.serve(createWebhookRoute(this.#context, pushSender));
    }
    this.#records = createRecords(this.#context.store, (write) => this.#runner.committer.write(write));
    this.#sending = new SendHandler(this.#context, this.#runner, this.#pushConfigs);
    this.#reading = new TaskQueries(this.#context, this.#runner);
    this.#cancelling = new CancelHandler(this.#context, this.#runner, this.#reading);
    this.#recovery = new Recovery(this.#context, this.#runner, this.#agents, () =>
      this.#context.meter.report(this.#agents.keys(), this.load),
    );
    this.#handOver = new HandOver(this.#context, this.#runner);
    this.#housekeeping = new Housekeeping(this.#context);
  }

  /** Takes up what an earlier process left, and from then on whatever comes. */
  async start(): Promise<void> {
    await this.#recovery.start();
    this.#housekeeping.start();
    this.#deliveries.start();
  }

  /** New messages go to the new definition; turns under way finish with the old one. */
  replaceAgent(name: string, agent: Agent): void {
    const served = this.#agents.get(name);
    if (served === undefined) return;
    served.agent = agent;
    served.queue.resize(agent.concurrency);
  }

  /** One agent, whatever its definition is at the time of a call. */
  agent(name: string): EngineAgent {
    const findProfile = () => this.#agents.get(name)?.agent.profile;
    return {
      get profile() {
        const profile = findProfile();
        if (profile === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "Agent not found.");
        return profile;
      },
      dispatch: <O extends Operation>(operation: O, call: CallContext) =>
        this.#perform(name, operation, call) as Promise<OutcomeOf<O>>,
    };
  }

  /** Whether callers may register webhooks for their tasks. */
  get push(): boolean {
    return this.#context.push;
  }

  /** The dialect a task was made over; undefined for a caller that may not see the task. */
  async findTaskDialect(agentName: string, taskId: string, caller: Caller): Promise<string | undefined> {
    const head = await this.#context.store.head(taskId);
    return head?.agent === agentName && head.owner === caller.owner ? head.dialect : undefined;
  }

  /** Tasks, queues and streams at this moment, for metrics. */
  get load(): { readonly tasks: number; readonly queued: number; readonly streams: number } {
    let queued = 0;
    for (const { queue } of this.#agents.values()) queued += queue.waiting;
    return { tasks: this.#runner.tasks.size, queued, streams: this.#streamsOfOwners.total };
  }

  /** Webhooks that are being notified at this moment. */
  get activePushes(): number {
    return this.#deliveries.countOf(WEBHOOK_ROUTE);
  }

  /** Has this node deliver what is registered for the route. Returns how to end that; what is under way is released. */
  serveRoute(route: DeliveryRoute): () => Promise<void> {
    return this.#deliveries.serve(route);
  }

  /** Deliveries other than webhooks, for tasks that exist; those of new messages come as `replyTo`. */
  get replies(): Pick<Deliveries, "put" | "delete" | "find"> {
    return this.#deliveries;
  }

  /** Small durable facts beside tasks. */
  get records(): Records {
    return this.#records;
  }

  /** This life of this process, as the store knows it. */
  get node(): string {
    return this.#context.node;
  }

  /** Whether other nodes serve the same store, and this one lives in their eyes. */
  get cluster(): { readonly isShared: boolean; readonly isCutOff: boolean } {
    const { isOver, isShared } = this.#context.lease;
    return { isShared, isCutOff: isOver };
  }

  /**
   * Refuses new messages from now on. Resolves when all runs have ended and agents have released what they kept for
   * cancelled tasks, or after `graceMs` with those left cut off; other nodes that share the store take them up.
   */
  async drain(graceMs: number): Promise<void> {
    this.#closing = true;
    if (!this.#context.lease.isShared) {
      await this.#within(graceMs, this.#runner.whenIdle());
      return;
    }
    this.#runner.draining = true;
    this.#recovery.stopClaiming();
    await this.#within(graceMs, Promise.all([this.#handOver.releaseQueued(), this.#runner.whenIdle()]));
    await this.#within(HAND_OVER_MS, this.#handOver.releaseAll());
    this.#runner.committer.hurry();
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#closed = true;
    this.#recovery.stop();
    this.#housekeeping.stop();
    this.#runner.tasks.abandonAll(new ProtocolError("UNAVAILABLE", "The server is shutting down.", { retryAfter: 1 }));
    this.#context.storeReturn.close();
    this.#runner.readers.close();
    await this.#deliveries.stop();
    await this.#recovery.leave();
    await this.#context.store.close();
  }

  /** Does not wait longer than that, nor fail. */
  async #within(milliseconds: number, work: Promise<unknown>): Promise<void> {
    let stopTimer = () => {};
    const late = new Promise<void>((resolve) => {
      stopTimer = this.#context.clock.after(milliseconds, resolve);
    });
    await Promise.race([work.catch(() => {}), late]);
    stopTimer();
  }

  #perform(agentName: string, asked: Operation, call: CallContext): Promise<Outcomes[Operation["kind"]]> {
    if (this.#closed) return reject("UNAVAILABLE", "The server is shutting down.");
    const served = this.#agents.get(agentName);
    if (served === undefined) return reject("METHOD_NOT_FOUND", "Agent not found.");
    const required = findMissingExtension(served.agent, call);
    if (required !== undefined) return reject("EXTENSION_SUPPORT_REQUIRED", `This agent requires ${required}.`);
    const operation = call.hops === undefined ? asked : addHops(asked, call.hops, this.#context.clock.now());
    switch (operation.kind) {
      case "send":
        return (
          this.#refusesSend(served, operation, call) ??
          this.#withRoom(call, () => this.#sending.send(served, operation, call))
        );
      case "stream":
        return (
          this.#refusesSend(served, operation, call) ??
          rejectIfNotStreaming(served.agent) ??
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
          rejectIfNotStreaming(served.agent) ??
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
        return reject("UNSUPPORTED_OPERATION", "The engine has no cards.");
    }
  }

  #refusesSend(
    { name, queue }: ServedAgent,
    operation: Extract<Operation, { kind: "send" | "stream" }>,
    call: CallContext,
  ): Promise<never> | undefined {
    // What a carrier has received, or a run of this node sends, is not sent again elsewhere: another node runs it.
    const stays = this.#runner.draining && (operation.replyTo !== undefined || call.hops !== undefined);
    if (this.#closing && !stays) return reject("UNAVAILABLE", "The server is shutting down.");
    if (this.#context.lease.isOver || this.#runner.committer.isStoreAway) {
      return Promise.reject(
        new ProtocolError("UNAVAILABLE", "The store cannot be reached; try again.", { retryAfter: 1 }),
      );
    }
    if (operation.metadata !== undefined) {
      try {
        const hops = readHops(operation.metadata);
        checkHopLimit(hops, this.#context.limits.hops);
        // Those who hold the places may be waiting for this very call.
        if (queue.isFull && hops.ancestors.includes(this.#context.toAgentId(name))) {
          return reject("RESOURCE_EXHAUSTED", statusText("agentCallsItself"));
        }
      } catch (error) {
        return Promise.reject(error);
      }
    }
    return operation.configuration?.taskPushNotificationConfig === undefined ? undefined : this.#refusesPush();
  }

  #refusesPush(): Promise<never> | undefined {
    if (this.#context.push) return undefined;
    return reject("PUSH_NOTIFICATION_NOT_SUPPORTED", "This agent does not send push notifications.");
  }

  /** Does what brings something new into the store, if the owner has room there. Not asked where there is no limit. */
  #withRoom<T>({ caller: { owner } }: CallContext, work: () => Promise<T>): Promise<T> {
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
  async #streaming<T>(call: CallContext, open: (onEnd: () => void) => Promise<T>): Promise<T> {
    const { owner } = call.caller;
    const address = call.caller.address && toNetworkPrefix(call.caller.address);
    if (!this.#streamsOfOwners.acquire(owner)) throw tooManyStreams("Too many of your streams are open.");
    if (!this.#streamsOfAddresses.acquire(address)) {
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

/** Kept with the message in its metadata, as it is when the call comes over the network. */
function addHops(operation: Operation, hops: Hops, now: number): Operation {
  if (operation.kind !== "send" && operation.kind !== "stream") return operation;
  return { ...operation, metadata: withHops(operation.metadata, hops, now) };
}

function tooManyStreams(message: string): ProtocolError {
  return new ProtocolError("RESOURCE_EXHAUSTED", message, { retryAfter: 5 });
}

function rejectIfNotStreaming(agent: Agent): Promise<never> | undefined {
  if (agent.profile.streaming) return undefined;
  return reject("UNSUPPORTED_OPERATION", "This agent does not stream.");
}

function findMissingExtension(agent: Agent, call: CallContext): string | undefined {
  return agent.profile.extensions.find(({ uri, required }) => required === true && !call.extensions.includes(uri))?.uri;
}

function reject(code: ConstructorParameters<typeof ProtocolError>[0], message: string): Promise<never> {
  return Promise.reject(new ProtocolError(code, message));
}
