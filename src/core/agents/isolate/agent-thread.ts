import inspector from "node:inspector";
import type { Worker } from "node:worker_threads";
import type { ConversationMemory, DroppedTask, Turn, TurnMemory } from "../../engine/agent.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonValue } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { statusText } from "../../model/status-texts.ts";
import { AgentModuleError } from "../load-module.ts";
import { createStallDetector, startThread, threadCpuMs } from "../threads.ts";
import {
  type AgentDescription,
  type Answer,
  BEAT_MS,
  type FromThread,
  fromErrorText,
  type MemoryRequest,
  type Request,
  type ThreadData,
  type ToThread,
} from "./thread-messages.ts";

export interface ThreadOptions {
  /** Absolute path of the module. */
  readonly file: string;
  /** Name of the agent in log entries. */
  readonly id: string;
  /** Time to stop after a turn was aborted or abandoned; then the thread is terminated. */
  readonly cancelGraceMs: number;
  /** CPU time without a pause after which the thread is terminated; false: never. */
  readonly stallMs: number | false;
  readonly log: Log;
}

/** The thread was terminated by the server. The message may be shown to the caller. */
export class ThreadEndedError extends Error {
  override readonly name = "ThreadEnded";
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

/** One thread with a copy of the agent's module. */
export class AgentThread {
  readonly agent: AgentDescription;
  readonly #worker: Worker;
  readonly #options: ThreadOptions;
  readonly #beats: Int32Array;
  readonly #isStalled: ((beats: number) => boolean) | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #run = 0;
  #memory: (Pick<TurnMemory, "get"> & Partial<TurnMemory>) | undefined;
  #conversation: ConversationMemory | undefined;
  #task = "";
  #ended: Error | undefined;
  #watch: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;

  private constructor(worker: Worker, beats: Int32Array, ready: Ready, options: ThreadOptions) {
    this.#worker = worker;
    this.#beats = beats;
    this.#options = options;
    this.agent = ready.agent;
    const { stallMs } = options;
    if (stallMs !== false) this.#isStalled = createStallDetector(stallMs, () => threadCpuMs(ready.thread));
    worker.on("message", (message: FromThread) => this.#receive(message));
    worker.on("error", (error) => {
      // A run that waits for the thread fails with the error and logs it.
      const { id: agent, log } = options;
      if (this.#waiting.size === 0) log.error({ agent, err: error }, "The agent's thread failed between two turns");
      this.#fail(error);
    });
    worker.on("exit", (code) => this.#fail(new Error(`The agent's thread ended with exit code ${code}.`)));
  }

  /** Resolves when the module is loaded. Rejects with an AgentModuleError if it cannot be used. */
  static start(options: ThreadOptions): Promise<AgentThread> {
    const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const workerData: ThreadData = { module: options.file, beats };
    const worker = startThread("core/agents/isolate/thread", { workerData, name: `agent ${options.id}` });
    return new Promise((resolve, reject) => {
      worker.once("error", reject);
      worker.once("exit", (code) => reject(new AgentModuleError(`${options.file} ended its thread with ${code}.`)));
      worker.once("message", (message: FromThread) => {
        if (message.kind === "ready") {
          // The thread must not keep the process running; the server does.
          worker.unref();
          resolve(new AgentThread(worker, new Int32Array(beats), message, options));
          return;
        }
        void worker.terminate();
        reject(new AgentModuleError(message.kind === "refused" ? message.message : `Unexpected ${message.kind}.`));
      });
    });
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Starts a turn. It ends when `next` is done, with `giveUp`, or when the thread ends. */
  begin(turn: Turn): void {
    const { message, history, task, caller, attempt, checkpoint, acceptedOutputModes, metadata, hops } = turn;
    this.#open(task.id, turn.memory);
    this.#conversation = turn.conversation;
    const data = { message, history, task, caller, attempt, checkpoint, acceptedOutputModes, metadata, hops };
    this.#post({ kind: "run", run: this.#run, turn: data });
  }

  next(): Promise<Answer> {
    return this.#request({ what: "next", run: this.#run });
  }

  /** The agent may still stop by itself within the grace time. */
  abort(reason: unknown): void {
    const code = ProtocolError.is(reason) ? reason.code : undefined;
    this.#post({
      kind: "abort",
      run: this.#run,
      code,
      message: reason instanceof Error ? reason.message : String(reason),
    });
    this.#endAfterGrace();
  }

  /** Lets the agent clean up after an abandoned turn. */
  async giveUp(): Promise<void> {
    this.#endAfterGrace();
    await this.#request({ what: "return", run: this.#run }).catch(() => {});
  }

  /** Called when no turn is running any more. */
  close(): void {
    clearInterval(this.#watch);
    clearTimeout(this.#grace);
    this.#grace = undefined;
    this.#memory = undefined;
    this.#conversation = undefined;
    this.#run++;
  }

  async extended(caller: Extract<Request, { what: "extended" }>["caller"]): Promise<Answer> {
    this.#open("", undefined);
    return this.#request({ what: "extended", caller });
  }

  async dropped({ memory, ...task }: DroppedTask): Promise<void> {
    this.#open(task.id, memory);
    await this.#request({ what: "dropped", run: this.#run, task });
  }

  end(reason: string): void {
    this.#fail(new ThreadEndedError(reason));
    void this.#worker.terminate();
  }

  #open(task: string, memory: Pick<TurnMemory, "get"> | undefined): void {
    this.#task = task;
    this.#memory = memory;
    this.#conversation = undefined;
    if (this.#isStalled === undefined) return;
    this.#watch = setInterval(() => this.#look(), BEAT_MS).unref();
  }

  #look(): void {
    if (this.#isStalled?.(Atomics.load(this.#beats, 0)) !== true || inspector.url() !== undefined) return;
    const { id: agent, log, stallMs } = this.#options;
    log.error({ agent, task: this.#task, cpuMs: stallMs }, "Agent does not return; its thread is ended");
    this.end(statusText("agentDidNotReturn"));
  }

  #endAfterGrace(): void {
    this.#grace ??= setTimeout(() => {
      const { id: agent, log } = this.#options;
      log.warn({ agent, task: this.#task }, "Agent did not stop in time; its thread is ended");
      this.end(statusText("agentDidNotStop"));
    }, this.#options.cancelGraceMs).unref();
  }

  #request(request: Request): Promise<Answer> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ kind: "request", id, request });
    });
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case "answer":
        this.#taken(message.id)?.resolve(message);
        return;
      case "threw":
        this.#taken(message.id)?.reject(fromErrorText(message.error));
        return;
      case "memory":
        this.#remember(message).then(
          (json) => this.#post({ kind: "remembered", id: message.id, json }),
          (error: unknown) => this.#post({ kind: "remembered", id: message.id, error: String(error) }),
        );
        return;
      case "rejection": {
        const { id: agent, log } = this.#options;
        log.error(
          { agent, err: fromErrorText(message.error) },
          "A promise was rejected and not handled; probably the agent forgot an await",
        );
        return;
      }
      case "ready":
      case "refused":
        return;
    }
  }

  #taken(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  async #remember({ run, of, action, key, json }: MemoryRequest): Promise<string | undefined> {
    const memory = run !== this.#run ? undefined : of === "task" ? this.#memory : this.#conversation;
    if (memory === undefined) throw new Error("The turn is over; its memory can no longer be used.");
    if (action === "get") return JSON.stringify(await memory.get(key));
    if ("append" in memory) {
      const value = json === undefined ? undefined : (JSON.parse(json) as JsonValue);
      await (action === "append" && value !== undefined ? memory.append(key, value) : memory.set(key, value));
    } else if (action === "recall") {
      const known = memory.once?.(key, () => Promise.reject(NOT_STORED)).catch(undefinedIfNotStored);
      return JSON.stringify(await known);
    } else if (action === "delete" || json === undefined) await memory.delete?.(key);
    else await memory.set?.(key, JSON.parse(json) as JsonValue);
    return undefined;
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #fail(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.close();
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

type Ready = Extract<FromThread, { kind: "ready" }>;

/** Rejected with where `once` has stored nothing yet. */
const NOT_STORED = new Error("Nothing is stored.");

function undefinedIfNotStored(error: unknown): undefined {
  if (error !== NOT_STORED) throw error;
}
