/** Entry point of the thread of an isolated agent: runs its module, one turn at a time. */
import { parentPort, workerData } from "node:worker_threads";
import { trackHops } from "../../client/run-hops.ts";
import type { Agent, AgentRun, ConversationMemory, Turn, TurnMemory, UnyieldedEvents } from "../../engine/agent.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonValue } from "../../model/json.ts";
import { AgentModuleError, loadAgentModule } from "../load-module.ts";
import { currentThreadId } from "../threads.ts";
import {
  type Answer,
  BEAT_MS,
  type FromThread,
  type MemoryRequest,
  type Request,
  type ThreadData,
  type ToThread,
  type TurnData,
  toErrorText,
} from "./thread-messages.ts";

const { module, beats } = workerData as ThreadData;
const count = new Int32Array(beats);
const NOTHING: Answer = { done: true, json: undefined };

interface Run {
  readonly number: number;
  readonly iterator: AgentRun;
  readonly controller: AbortController;
  readonly unyielded: UnyieldedEvents;
}

let agent: Agent;
let current: Run | undefined;
const waiting = new Map<number, { resolve(json: string | undefined): void; reject(error: Error): void }>();
let lastId = 0;

const send = (message: FromThread): void => parentPort?.postMessage(message);

setInterval(() => Atomics.add(count, 0, 1), BEAT_MS);
process.on("unhandledRejection", (error) => send({ kind: "rejection", error: toErrorText(error) }));
parentPort?.on("message", receive);
// In a cycle of agents every call may reach a new thread: already its first call has to pass the hops.
trackHops();
try {
  agent = await loadAgentModule(module);
  const { profile, onCrash, concurrency, timeoutMs } = agent;
  const { extended, ...rest } = profile;
  const asksForExtended = typeof extended === "function";
  const shown = asksForExtended || extended === undefined ? rest : { ...rest, extended };
  const receivesDropped = agent.dropped !== undefined;
  const description = { profile: shown, onCrash, concurrency, timeoutMs, asksForExtended, receivesDropped };
  send({ kind: "ready", agent: description, thread: currentThreadId() });
} catch (error) {
  send({ kind: "refused", message: error instanceof AgentModuleError ? error.message : String(error) });
}

function receive(message: ToThread): void {
  switch (message.kind) {
    case "run":
      current = start(message.run, message.turn);
      return;
    case "abort": {
      const { code, message: reason } = message;
      if (current?.number !== message.run) return;
      current.controller.abort(code === undefined ? new Error(reason) : new ProtocolError(code, reason));
      return;
    }
    case "request":
      answer(message.request).then(
        (found) => send({ kind: "answer", id: message.id, ...found }),
        (error: unknown) => send({ kind: "threw", id: message.id, error: toErrorText(error) }),
      );
      return;
    case "remembered": {
      const pending = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error === undefined) pending?.resolve(message.json);
      else pending?.reject(new Error(message.error));
      return;
    }
  }
}

function start(number: number, data: TurnData): Run {
  const controller = new AbortController();
  const unyielded: UnyieldedEvents = new Map();
  const turn: Turn = {
    ...data,
    unyielded,
    signal: controller.signal,
    memory: new RemoteMemory(number),
    conversation: remoteConversation(number),
  };
  try {
    return { number, controller, unyielded, iterator: agent.run(turn) };
  } catch (error) {
    const next = () => Promise.reject(error);
    return { number, controller, unyielded, iterator: { next } };
  }
}

async function answer(request: Request): Promise<Answer> {
  switch (request.what) {
    case "next": {
      if (current?.number !== request.run) return NOTHING;
      const { iterator, unyielded } = current;
      const { done = false, value } = await iterator.next();
      for (const made of objectsOf(value)) unyielded.delete(made);
      const warnings = done ? [...unyielded.values()].flatMap((describe) => describe() ?? []) : [];
      return { done, json: JSON.stringify(value), warnings };
    }
    case "return":
      if (current?.number === request.run) await current.iterator.return?.();
      return NOTHING;
    case "extended": {
      const { extended } = agent.profile;
      return {
        done: true,
        json: JSON.stringify(typeof extended === "function" ? await extended(request.caller) : extended),
      };
    }
    case "dropped":
      await agent.dropped?.({ ...request.task, memory: new RemoteMemory(request.run) });
      return NOTHING;
  }
}

/** What the agent made of what it yielded or returned: the message or the artifact of each event, or a reply. */
function objectsOf(value: unknown): readonly object[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.flatMap((one) => {
    if (typeof one !== "object" || one === null) return [];
    const { artifact, message } = one as { readonly artifact?: unknown; readonly message?: unknown };
    return [one, artifact, message].filter((made) => typeof made === "object" && made !== null);
  });
}

/** The memory is stored by the serving thread, together with the task's other writes. */
class RemoteMemory implements TurnMemory {
  readonly #run: number;

  constructor(run: number) {
    this.#run = run;
  }

  async get<T extends JsonValue>(key: string): Promise<T | undefined> {
    const json = await this.#request("get", key);
    return json === undefined ? undefined : (JSON.parse(json) as T);
  }

  async set(key: string, value: JsonValue): Promise<void> {
    await this.#request("set", key, JSON.stringify(value));
  }

  async delete(key: string): Promise<void> {
    await this.#request("delete", key);
  }

  async once<T extends JsonValue>(key: string, compute: () => Promise<T> | T): Promise<T> {
    const known = await this.#request("recall", key);
    if (known !== undefined) return JSON.parse(known) as T;
    const value = await compute();
    await this.set(key, value);
    return value;
  }

  #request(action: MemoryRequest["action"], key: string, json?: string): Promise<string | undefined> {
    return requestMemory({ run: this.#run, of: "task", action, key, json });
  }
}

function remoteConversation(run: number): ConversationMemory {
  const request = (action: MemoryRequest["action"], key: string, value?: JsonValue) =>
    requestMemory({ run, of: "conversation", action, key, json: JSON.stringify(value) });
  return {
    async get<T extends JsonValue>(key: string): Promise<T | undefined> {
      const json = await request("get", key);
      return json === undefined ? undefined : (JSON.parse(json) as T);
    },
    async set(key, value) {
      await request("set", key, value);
    },
    async append(key, item) {
      await request("append", key, item);
    },
  };
}

function requestMemory(request: Omit<MemoryRequest, "id">): Promise<string | undefined> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    send({ kind: "memory", id, ...request });
  });
}
