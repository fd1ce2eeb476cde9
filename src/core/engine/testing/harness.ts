import type { LogEntry } from "../../model/event.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Message, Part } from "../../model/message.ts";
import type {
  CallContext,
  FrameStream,
  ReplyTo,
  SendInput,
  SendOutcome,
  StreamFrame,
  TaskPage,
  TaskPushNotificationConfig,
} from "../../model/operation.ts";
import { type CounterName, type IdGenerator, SILENT_LOG } from "../../model/ports.ts";
import type { Task } from "../../model/task.ts";
import type { TaskStore } from "../../store/contract.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { openDriver } from "../../store/sqlite/driver.ts";
import { migrate } from "../../store/sqlite/schema.ts";
import { createSqliteStore } from "../../store/sqlite/sqlite-store.ts";
import type { Agent } from "../agent.ts";
import type { PushAttempt, PushSender } from "../deliveries/push-sender.ts";
import { Engine } from "../engine.ts";
import type { EngineLimits, EngineTimes } from "../options.ts";
import { FakeClock } from "./fake-clock.ts";

export interface HarnessOptions {
  /** One agent is served as `agent`. */
  readonly agent?: Agent;
  readonly agents?: Readonly<Record<string, Agent>>;
  /** What stands between the engine and its store. */
  readonly wrap?: (store: TaskStore) => TaskStore;
  readonly limits?: Partial<EngineLimits>;
  readonly times?: Partial<EngineTimes>;
  readonly liveBytes?: number;
  readonly push?: boolean;
  readonly pushSender?: PushSender;
  readonly onPushTry?: (tried: PushAttempt) => void;
  /** An engine on whose store and clock this one runs too, beside it or after it. */
  readonly after?: Harness;
  /** What is shared with later engines. Default: a store in memory. */
  readonly shared?: SharedStore;
}

/** A store and the clock that it and its engines go by. */
export interface SharedStore {
  readonly clock: FakeClock;
  readonly store: TaskStore;
}

/** The clock of the store may be ahead of that of its engines. */
export function createSharedMemory(clock = new FakeClock(), aheadMs = 0): SharedStore {
  const storeClock = { now: () => clock.now() + aheadMs, after: () => () => {} };
  // It outlives the engines of a test, so to them it is durable.
  return { clock, store: { ...createMemoryStore({ clock: storeClock }), durable: true } };
}

/** An SQLite file that never was on disk. */
export async function createSharedSqlite(clock = new FakeClock()): Promise<SharedStore> {
  const driver = await openDriver(":memory:");
  migrate(driver, 0);
  return { clock, store: createSqliteStore(driver, ":memory:", { clock, log: SILENT_LOG }, () => {}) };
}

export interface CallInput {
  readonly agent?: string;
  readonly owner?: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly replay?: boolean;
}

interface SendCallInput extends CallInput {
  readonly taskId?: string;
  readonly chosenId?: string;
  readonly alwaysTask?: boolean;
  readonly contextId?: string;
  readonly messageId?: string;
  readonly parts?: readonly Part[];
  readonly returnImmediately?: boolean;
  readonly push?: TaskPushNotificationConfig;
  readonly replyTo?: ReplyTo;
  readonly metadata?: JsonObject;
}

let incarnations = 0;
let serial = 0;

const ids: IdGenerator = {
  task: () => `task-${++serial}`,
  context: () => `context-${++serial}`,
  message: () => `message-${++serial}`,
  artifact: () => `artifact-${++serial}`,
  pushConfig: () => `push-${++serial}`,
  node: () => `node-${++incarnations}`,
};

/** An engine over a store that others may share, with time in the hands of the test. */
export class Harness {
  readonly clock: FakeClock;
  /** What the engine really writes to, without whatever was wrapped around it. */
  readonly memory: TaskStore;
  readonly store: TaskStore;
  readonly engine: Engine;
  readonly counts: Partial<Record<CounterName, number>> = {};
  readonly logged: string[] = [];
  #alive = true;

  private constructor(options: HarnessOptions) {
    const shared =
      options.after === undefined
        ? (options.shared ?? createSharedMemory())
        : { clock: options.after.clock, store: options.after.memory };
    this.clock = shared.clock;
    this.memory = shared.store;
    this.store = options.wrap?.(this.memory) ?? this.memory;
    const note = (_fields: unknown, message: string) => void this.logged.push(message);
    const agents = options.agents ?? (options.agent === undefined ? {} : { agent: options.agent });
    this.engine = new Engine(
      {
        store: this.#mortal(this.store),
        clock: {
          now: () => this.clock.now(),
          after: (milliseconds, run) => this.clock.after(milliseconds, () => void (this.#alive && run())),
        },
        ids,
        log: { debug: note, info: note, warn: note, error: note },
        meter: {
          count: (name, by = 1) => {
            this.counts[name] = (this.counts[name] ?? 0) + by;
          },
        },
        limits: options.limits ?? {},
        times: options.times ?? {},
        ...(options.liveBytes === undefined ? undefined : { liveBytes: options.liveBytes }),
        ...(options.push === undefined ? undefined : { push: options.push }),
        ...(options.pushSender === undefined ? undefined : { pushSender: options.pushSender }),
        ...(options.onPushTry === undefined ? undefined : { onPushAttempt: options.onPushTry }),
      },
      new Map(Object.entries(agents)),
    );
  }

  /** `onCreate` gets the engine before it starts: runs that it resumes may need it. */
  static async start(options: HarnessOptions, onCreate?: (harness: Harness) => void): Promise<Harness> {
    const harness = new Harness(options);
    onCreate?.(harness);
    await harness.engine.start();
    return harness;
  }

  send(text: string, options: SendCallInput = {}): Promise<SendOutcome> {
    return this.engine.agent(nameOf(options)).dispatch({ kind: "send", ...inputOf(text, options) }, callOf(options));
  }

  /** A blocking send that is answered with a task. */
  async task(text: string, options: SendCallInput = {}): Promise<Task> {
    const outcome = await this.send(text, options);
    if (!("task" in outcome)) throw new Error("The answer was a message, not a task.");
    return outcome.task;
  }

  /** A task that is under way. */
  begin(text: string, options: SendCallInput = {}): Promise<Task> {
    return this.task(text, { ...options, returnImmediately: true });
  }

  stream(text: string, options: SendCallInput = {}): Promise<FrameStream> {
    return this.engine.agent(nameOf(options)).dispatch({ kind: "stream", ...inputOf(text, options) }, callOf(options));
  }

  subscribe(id: string, after?: number, options: CallInput = {}): Promise<FrameStream> {
    const operation = { kind: "subscribe" as const, id, ...(after === undefined ? undefined : { after }) };
    return this.engine.agent(nameOf(options)).dispatch(operation, callOf(options));
  }

  get(id: string, options: CallInput = {}): Promise<Task> {
    return this.engine.agent(nameOf(options)).dispatch({ kind: "get", id }, callOf(options));
  }

  cancel(id: string, options: CallInput = {}): Promise<Task> {
    return this.engine.agent(nameOf(options)).dispatch({ kind: "cancel", id }, callOf(options));
  }

  list(options: CallInput = {}): Promise<TaskPage> {
    return this.engine.agent(nameOf(options)).dispatch({ kind: "list", includeArtifacts: true }, callOf(options));
  }

  /** The whole log as it is stored. */
  async log(id: string): Promise<readonly LogEntry[]> {
    const [read] = await this.memory.read([{ id, after: 0 }], Number.MAX_SAFE_INTEGER);
    return read?.kind === "entries" ? read.entries : [];
  }

  async stored(id: string): Promise<Task> {
    const snapshot = await this.memory.snapshot(id, { history: Number.MAX_SAFE_INTEGER, artifacts: true });
    if (snapshot === undefined) throw new Error(`There is no task ${id}.`);
    return snapshot.task;
  }

  /** From here on nothing this engine does has any effect, and it does not notice: as if its process had been killed. */
  crash(): void {
    this.#alive = false;
  }

  #mortal(store: TaskStore): TaskStore {
    const live = <Given extends readonly unknown[], Result>(call: (...given: Given) => Promise<Result>) => {
      return (...given: Given): Promise<Result> => (this.#alive ? call(...given) : new Promise(() => {}));
    };
    return {
      ...store,
      write: live(store.write),
      head: live(store.head),
      snapshot: live(store.snapshot),
      read: live(store.read),
      numbers: live(store.numbers),
      findIdempotencyRecord: live(store.findIdempotencyRecord),
      heartbeat: live(store.heartbeat),
      claim: live(store.claim),
      memory: live(store.memory),
      delivery: live(store.delivery),
      deliveries: live(store.deliveries),
      claimDeliveries: live(store.claimDeliveries),
      record: live(store.record),
      records: live(store.records),
    };
  }
}

function nameOf(options: CallInput): string {
  return options.agent ?? "agent";
}

export function callOf(options: CallInput = {}): CallContext {
  return {
    caller: { owner: options.owner ?? "alice", authenticated: true },
    tenant: options.tenant ?? "",
    extensions: options.replay === true ? [EXTENSIONS.replay] : [],
    dialect: "test",
    ...(options.key === undefined ? undefined : { idempotencyKey: options.key }),
  };
}

function inputOf(text: string, options: SendCallInput): SendInput {
  const message: Message = {
    messageId: options.messageId ?? `question-${++serial}`,
    role: "ROLE_USER",
    parts: options.parts ?? [{ text }],
    ...(options.taskId === undefined ? undefined : { taskId: options.taskId }),
    ...(options.contextId === undefined ? undefined : { contextId: options.contextId }),
  };
  const { returnImmediately, push, chosenId, alwaysTask, replyTo, metadata } = options;
  const beside = {
    ...(chosenId === undefined ? undefined : { chosenId }),
    ...(alwaysTask === undefined ? undefined : { alwaysTask }),
    ...(replyTo === undefined ? undefined : { replyTo }),
    ...(metadata === undefined ? undefined : { metadata }),
  };
  if (returnImmediately === undefined && push === undefined) return { message, ...beside };
  const configuration = {
    ...(returnImmediately === undefined ? undefined : { returnImmediately }),
    ...(push === undefined ? undefined : { taskPushNotificationConfig: push }),
  };
  return { message, configuration, ...beside };
}

export async function framesOf(stream: FrameStream): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  for await (const batch of stream) frames.push(...batch);
  return frames;
}
