import { Abort } from "../../model/abort.ts";
import type { Caller } from "../../model/caller.ts";
import { addAncestor, type Hops, limitHops, readHops } from "../../model/extensions.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { Task } from "../../model/task.ts";
import type { ConversationMemory, Turn, TurnMemory, UnyieldedEvents } from "../agent.ts";
import type { QueuedTurn } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { createRecords } from "../records.ts";
import type { Committer } from "../tasks/committer.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import { createConversation } from "./conversation.ts";

/** What an agent sees of one message. Signal, history and memory are made when asked for: most turns need none. */
export class RunningTurn implements Turn {
  readonly #message: Message;
  readonly task: Turn["task"];
  readonly caller: Caller;
  readonly attempt: number;
  readonly checkpoint: JsonValue | undefined;
  readonly acceptedOutputModes: readonly string[];
  readonly metadata: JsonObject | undefined;
  #unyielded: UnyieldedEvents | undefined;
  readonly #live: LiveTask;
  readonly #context: EngineContext;
  readonly #committer: Committer;
  /** When the turn is over in any case, in milliseconds since the epoch. */
  readonly #deadline: number | undefined;
  #isFrozen = false;
  #continuesStored = false;
  #cancellation: Abort | undefined;
  #memory: DurableMemory | undefined;
  #conversation: ConversationMemory | undefined;
  #followUp: AbortController | undefined;
  readonly #isRepeated: boolean;
  /** Nothing can have been remembered before. */
  readonly #isFirst: boolean;

  constructor(
    context: EngineContext,
    committer: Committer,
    live: LiveTask,
    queued: QueuedTurn,
    deadline: number | undefined,
  ) {
    this.#context = context;
    this.#committer = committer;
    this.#live = live;
    this.#deadline = deadline;
    this.#message = queued.message;
    this.#isRepeated = queued.isRepeated === true;
    this.#isFirst = live.attempt === 1 && queued.number === 1;
    this.task = { id: live.id, contextId: live.contextId };
    this.caller = queued.caller;
    this.attempt = live.attempt;
    this.checkpoint = queued.checkpoint;
    this.acceptedOutputModes = queued.acceptedOutputModes;
    this.metadata = queued.metadata;
  }

  /** Frozen, like the history: both are what the log says, and an agent must not be able to change that. */
  get message(): Message {
    if (!this.#isFrozen) {
      this.#isFrozen = true;
      freezeMessage(this.#message);
    }
    return this.#message;
  }

  get history(): readonly Message[] {
    const all = this.#live.fold.history;
    const own = all.findLastIndex((message) => message.messageId === this.#message.messageId);
    const before = all.slice(0, own < 0 ? all.length : own);
    for (const message of before) freezeMessage(message);
    return before;
  }

  stored(): Task {
    this.#continuesStored = true;
    return this.#live.fold.toTask();
  }

  get hops(): Hops {
    const came = addAncestor(readHops(this.metadata), this.#context.toAgentId(this.#live.agent), this.task.id);
    return limitHops(came, this.#deadline);
  }

  get unyielded(): UnyieldedEvents {
    this.#unyielded ??= new Map();
    return this.#unyielded;
  }

  /** What the agent made, the message or artifact of an event, was yielded or returned. */
  markYielded(made: object | undefined): void {
    if (made !== undefined) this.#unyielded?.delete(made);
  }

  warnings(): readonly string[] {
    if (this.#unyielded === undefined || this.#unyielded.size === 0) return [];
    return [...this.#unyielded.values()].flatMap((describe) => describe() ?? []);
  }

  get cancellation(): Abort {
    this.#cancellation ??= new Abort();
    return this.#cancellation;
  }

  get signal(): AbortSignal {
    return this.cancellation.platformSignal;
  }

  get followUp(): AbortSignal {
    if (this.#followUp === undefined) {
      const controller = new AbortController();
      this.#followUp = controller;
      if (this.#live.openTurns > 1) controller.abort();
      else this.#live.on("turn-added", () => controller.abort());
    }
    return this.#followUp.signal;
  }

  get memory(): TurnMemory {
    this.#memory ??= new DurableMemory(this.#context, this.#committer, this.#live, this.#isFirst);
    return this.#memory;
  }

  /**
   * Whether the first chunk with `append` continues what the artifact has. A run that was cut off and knows nothing of how
   * far it came writes everything again; one that has looked up what it remembered, what is stored, or a checkpoint,
   * continues from there.
   */
  get continuesOutput(): boolean {
    const hasRecalled = this.#continuesStored || this.#memory?.hasRecalled === true;
    return !this.#isRepeated || this.checkpoint !== undefined || hasRecalled;
  }

  get conversation(): ConversationMemory {
    const { agent, contextId, id, owner } = this.#live;
    this.#conversation ??= createConversation({
      records: createRecords(this.#context.store, (write) => this.#committer.write(write)),
      agent,
      owner,
      contextId,
      origin: `${id}/${this.#message.messageId}`,
      whenFlushed: () => this.#live.whenFlushed().catch(() => {}),
    });
    return this.#conversation;
  }

  abort(reason: Error): void {
    this.cancellation.abort(reason);
  }
}

/** Member by member rather than by walking the object: nearly every turn comes through here. */
function freezeMessage(message: Message): void {
  if (Object.isFrozen(message)) return;
  Object.freeze(message);
  Object.freeze(message.parts);
  for (const part of message.parts) {
    Object.freeze(part);
    if ("data" in part) freezeDeeply(part.data);
    if (part.metadata !== undefined) freezeDeeply(part.metadata);
  }
  if (message.metadata !== undefined) freezeDeeply(message.metadata);
}

function freezeDeeply(value: JsonValue | undefined): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freezeDeeply(member);
}

class DurableMemory implements TurnMemory {
  readonly #context: EngineContext;
  readonly #committer: Committer;
  readonly #live: LiveTask;
  #values: Promise<Map<string, string>> | undefined;
  /** The run has read a value that it did not write itself. `once` does not count: it is for runs that start again. */
  hasRecalled = false;
  readonly #written = new Set<string>();

  constructor(context: EngineContext, committer: Committer, live: LiveTask, isEmpty: boolean) {
    this.#context = context;
    this.#committer = committer;
    this.#live = live;
    if (isEmpty) this.#values = Promise.resolve(new Map());
  }

  async get<T extends JsonValue>(key: string): Promise<T | undefined> {
    const text = (await this.#load()).get(key);
    if (text !== undefined && !this.#written.has(key)) this.hasRecalled = true;
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async set(key: string, value: JsonValue): Promise<void> {
    await this.#write(key, JSON.stringify(value));
  }

  async delete(key: string): Promise<void> {
    await this.#write(key, undefined);
  }

  async once<T extends JsonValue>(key: string, compute: () => Promise<T> | T): Promise<T> {
    const known = (await this.#load()).get(key);
    if (known !== undefined) return JSON.parse(known) as T;
    const value = await compute();
    await this.set(key, value);
    return value;
  }

  #load(): Promise<Map<string, string>> {
    this.#values ??= this.#read();
    return this.#values;
  }

  /** An agent must not fail because the database is away for a moment. */
  async #read(): Promise<Map<string, string>> {
    const { store, storeReturn } = this.#context;
    const isNeeded = () => !this.#live.closed;
    return new Map(await storeReturn.retry(() => store.memory(this.#live.id), isNeeded));
  }

  async #write(key: string, value: string | undefined): Promise<void> {
    const values = await this.#load();
    // Never stored before an event that was pushed before it. If those are lost, the write finds out why.
    await this.#live.whenFlushed().catch(() => {});
    const { id, fence } = this.#live;
    const result = await this.#committer.write({ kind: "remember", id, fence, key, value }).catch((error: Error) => {
      // The run ends here and not by what its agent makes of the error: it is taken up again.
      this.#live.lose(error);
      throw error;
    });
    if (!result.ok) throw new Error(`The task's memory can no longer be written: ${result.refusal}.`);
    this.#written.add(key);
    if (value === undefined) values.delete(key);
    else values.set(key, value);
  }
}
