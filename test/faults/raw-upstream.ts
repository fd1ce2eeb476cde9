/**
 * An agent written from the documents of each dialect, on plain HTTP and without any code of this project. It writes
 * numbers, one piece at a time when a test says so, into one artifact: `1;2;3;…`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen } from "../support/lifecycle.ts";

/** Keyed by what a matrix calls the dialect; the value is the name in a configuration. */
export const DIALECTS = {
  "0.1": "a2a-v01",
  "0.2": "a2a-v03",
  "0.3": "a2a-v03",
  "1.0": "a2a-v1",
  "tasks-rest": "tasks-rest",
  xiaoyi: "xiaoyi-http",
} as const;
export type Dialect = keyof typeof DIALECTS;

/**
 * `replay`: events have numbers, and a stream continues after any of them. `snapshot`: a stream that is opened again
 * begins with the task. `following`: it has only what follows. `none`: there are no streams.
 */
export const MODES = ["replay", "snapshot", "following", "none"] as const;
export type Mode = (typeof MODES)[number];

type State = "working" | "completed" | "canceled";
type Frame = { readonly piece: number } | { readonly state: State };

interface UpstreamTask {
  readonly id: string;
  readonly context: string;
  readonly label: string;
  readonly dialect: Dialect;
  readonly mode: Mode;
  readonly frames: Frame[];
  readonly streams: Set<ServerResponse>;
  /** Answers to sends that wait for the end. */
  readonly waiting: ServerResponse[];
  pieces: number;
  state: State;
}

/** What resubscribing to a task that is over, or gone, is answered with; servers differ. */
const REFUSALS: Readonly<Record<Dialect, number>> = {
  "0.1": -32602,
  "0.2": -32001,
  "0.3": -32603,
  "1.0": -32004,
  "tasks-rest": 409,
  xiaoyi: -32601,
};

const isLegacy = (dialect: Dialect) => dialect === "0.1" || dialect === "tasks-rest";

const textPart = (dialect: Dialect, text: string) => {
  if (dialect === "1.0") return { text };
  return isLegacy(dialect) ? { type: "text", text } : { kind: "text", text };
};

function statusOf({ dialect, state }: Pick<UpstreamTask, "dialect"> & { state: State }) {
  return { state: dialect === "1.0" ? `TASK_STATE_${state.toUpperCase()}` : state };
}

function taskOf({ context, dialect, id, pieces, state }: UpstreamTask): object {
  const text = Array.from({ length: pieces }, (_, at) => `${at + 1};`).join("");
  const name = dialect === "0.1" ? { index: 0 } : { artifactId: "numbers" };
  const artifacts = pieces === 0 ? [] : [{ ...name, parts: [textPart(dialect, text)] }];
  const place = dialect === "0.1" ? { sessionId: context } : { contextId: context };
  const kind = dialect === "0.2" || dialect === "0.3" ? { kind: "task" } : {};
  return { id, ...place, ...kind, status: statusOf({ dialect, state }), artifacts };
}

function frameOf(task: UpstreamTask, frame: Frame): object {
  const { context, dialect, id } = task;
  const place = { taskId: id, contextId: context };
  if ("piece" in frame) {
    const parts = [textPart(dialect, `${frame.piece};`)];
    const append = frame.piece > 1;
    if (dialect === "0.1") return { id, artifact: { index: 0, parts, append } };
    if (dialect === "tasks-rest") return { ...place, artifact: { artifactId: "numbers", index: 0, parts, append } };
    const update = { ...place, artifact: { artifactId: "numbers", parts }, append };
    return dialect === "1.0" ? { artifactUpdate: update } : { kind: "artifact-update", ...update, lastChunk: false };
  }
  const status = statusOf({ dialect, state: frame.state });
  const final = frame.state !== "working";
  if (dialect === "0.1") return { id, status, final };
  if (dialect === "tasks-rest") return { task: taskOf({ ...task, state: frame.state }) };
  return dialect === "1.0"
    ? { statusUpdate: { ...place, status } }
    : { kind: "status-update", ...place, status, final };
}

const asFirstFrame = (task: UpstreamTask): object =>
  task.dialect === "1.0" || task.dialect === "tasks-rest" ? { task: taskOf(task) } : taskOf(task);

const CARD = {
  name: "Counter",
  description: "Writes numbers.",
  version: "1",
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "count", name: "Count", description: "Writes numbers.", tags: ["numbers"] }],
};

function cardOf(dialect: Dialect, mode: Mode, url: string): object {
  const capabilities = { streaming: mode !== "none", pushNotifications: false };
  if (dialect === "1.0") {
    const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
    return { ...CARD, capabilities, supportedInterfaces };
  }
  if (dialect === "0.3") return { ...CARD, capabilities, url, protocolVersion: "0.3.0", preferredTransport: "JSONRPC" };
  if (dialect === "tasks-rest") {
    return { ...CARD, capabilities, url, defaultInputModes: ["text"], defaultOutputModes: ["text"] };
  }
  return { ...CARD, capabilities, url };
}

interface Params {
  readonly id?: string;
  readonly sessionId?: string;
  readonly message?: { readonly contextId?: string; readonly parts: readonly { readonly text: string }[] };
  readonly configuration?: { readonly blocking?: boolean; readonly returnImmediately?: boolean };
}

interface Asked {
  readonly dialect: Dialect;
  readonly mode: Mode;
  readonly operation: "send" | "stream" | "get" | "subscribe" | "cancel" | "unknown";
  readonly rpcId: unknown;
  readonly params: Params;
  readonly after: number | undefined;
  readonly answer: ServerResponse;
}

const OPERATIONS: Readonly<Record<string, Asked["operation"]>> = {
  "tasks/send": "send",
  "tasks/sendSubscribe": "stream",
  "tasks/get": "get",
  "tasks/resubscribe": "subscribe",
  "tasks/cancel": "cancel",
  "message/send": "send",
  "message/stream": "stream",
  SendMessage: "send",
  SendStreamingMessage: "stream",
  GetTask: "get",
  SubscribeToTask: "subscribe",
  CancelTask: "cancel",
};

export class RawUpstream {
  readonly tasks = new Map<string, UpstreamTask>();
  /** `label operation` of every request about a task. */
  readonly requests: string[] = [];
  /** Cancellation is refused. */
  refusesCancel = false;
  #url = "";
  #count = 0;
  /** Labels of tasks that were forgotten, by id. */
  readonly #forgotten = new Map<string, string>();

  static async start(): Promise<RawUpstream> {
    const upstream = new RawUpstream();
    const server = createServer((incoming, answer) => void upstream.#serve(incoming, answer));
    upstream.#url = `http://127.0.0.1:${await listen(server)}`;
    return upstream;
  }

  /** The keys of a remote agent. */
  remote(dialect: Dialect, mode: Mode): Readonly<Record<string, unknown>> {
    const remote = `${this.#url}/${dialect}/${mode}`;
    const credentials = dialect === "xiaoyi" ? { credentials: { ak: "ak", sk: "a-secret-key" } } : {};
    return { remote, dialect: DIALECTS[dialect], ...credentials };
  }

  of(label: string): UpstreamTask {
    for (const task of this.tasks.values()) if (task.label === label) return task;
    throw new Error(`No task was sent for ${label}.`);
  }

  /** Writes the pieces up to a number, to the streams that are open. */
  advance(label: string, until: number): void {
    const task = this.of(label);
    while (task.pieces < until) {
      task.pieces++;
      this.#add(task, { piece: task.pieces });
    }
  }

  end(label: string, state: State = "completed"): void {
    const task = this.of(label);
    task.state = state;
    this.#add(task, { state });
    for (const stream of task.streams) stream.end();
    task.streams.clear();
    for (const answer of task.waiting.splice(0)) this.#send(answer, task, taskOf(task));
  }

  /** Breaks the connections of a task. */
  cut(label: string): void {
    const { streams, waiting } = this.of(label);
    for (const answer of [...streams, ...waiting.splice(0)]) answer.destroy();
    streams.clear();
  }

  /** As a restart without a store does. */
  forget(label: string): void {
    this.cut(label);
    const { id } = this.of(label);
    this.#forgotten.set(id, label);
    this.tasks.delete(id);
  }

  count(label: string, ...operations: readonly Asked["operation"][]): number {
    return this.requests.filter((request) => operations.some((one) => request === `${label} ${one}`)).length;
  }

  #add(task: UpstreamTask, frame: Frame): void {
    task.frames.push(frame);
    for (const stream of task.streams) this.#write(stream, task, frameOf(task, frame), task.frames.length);
  }

  #write(stream: ServerResponse, { dialect, id, mode }: UpstreamTask, event: object, number: number): void {
    const data = dialect === "tasks-rest" ? event : { jsonrpc: "2.0", id, result: event };
    stream.write(`${mode === "replay" ? `id: ${number}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
  }

  #send(answer: ServerResponse, { dialect }: Pick<UpstreamTask, "dialect">, result: object, rpcId: unknown = 1): void {
    const body = dialect === "tasks-rest" ? result : { jsonrpc: "2.0", id: rpcId, result };
    answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  #refuse({ answer, dialect, rpcId }: Asked, code: number): void {
    if (dialect === "tasks-rest") {
      const error = { code: code === 404 ? "task-not-found" : "unsupported-operation", message: "No." };
      answer.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify({ error }));
      return;
    }
    const body = { jsonrpc: "2.0", id: rpcId, error: { code, message: "No." } };
    answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  async #serve(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const [path = ""] = (incoming.url ?? "").split("?");
    const [, dialect, mode, ...rest] = path.split("/") as [string, Dialect, Mode, ...string[]];
    if (rest[0] === ".well-known") {
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end(JSON.stringify(cardOf(dialect, mode, `${this.#url}/${dialect}/${mode}`)));
      return;
    }
    const body = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
    const lastEventId = incoming.headers["last-event-id"];
    const after = mode === "replay" && typeof lastEventId === "string" ? Number(lastEventId) : undefined;
    const common = { dialect, mode, answer, after };
    if (dialect === "tasks-rest") {
      const [, id = "", verb] = rest;
      const isSend = id === "send" || id === "sendSubscribe";
      const operation = isSend ? (id === "send" ? "send" : "stream") : ((verb ?? "get") as Asked["operation"]);
      this.#answer({ ...common, operation, rpcId: 1, params: isSend ? body : { id } });
      return;
    }
    const operation = OPERATIONS[body.method] ?? "unknown";
    this.#answer({ ...common, operation, rpcId: body.id, params: body.params ?? {} });
  }

  #answer(asked: Asked): void {
    const { answer, dialect, mode, operation, params } = asked;
    const { id = "" } = params;
    if (operation === "send" || operation === "stream") {
      this.#begin(asked);
      return;
    }
    const task = this.tasks.get(id);
    this.requests.push(`${task?.label ?? this.#forgotten.get(id) ?? id} ${operation}`);
    const isRest = dialect === "tasks-rest";
    if (operation === "unknown") this.#refuse(asked, -32601);
    else if (task === undefined) {
      this.#refuse(asked, isRest ? 404 : operation === "subscribe" ? REFUSALS[dialect] : -32001);
    } else if (operation === "get") this.#send(answer, task, taskOf(task), asked.rpcId);
    else if (operation === "cancel" && this.refusesCancel) this.#refuse(asked, isRest ? 409 : -32002);
    else if (operation === "cancel") {
      this.end(task.label, "canceled");
      this.#send(answer, task, taskOf(task), asked.rpcId);
    } else if (mode === "none") this.#refuse(asked, isRest ? 405 : -32004);
    else if (task.state !== "working" && asked.after === undefined) this.#refuse(asked, REFUSALS[dialect]);
    else this.#subscribe(task, asked);
  }

  #subscribe(task: UpstreamTask, { after, answer, mode }: Asked): void {
    answer.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    if (mode === "snapshot") this.#write(answer, task, asFirstFrame(task), 0);
    if (after !== undefined) {
      for (const [at, frame] of task.frames.entries()) {
        if (at >= after) this.#write(answer, task, frameOf(task, frame), at + 1);
      }
    }
    if (task.state === "working") this.#attend(task, answer);
    else answer.end();
  }

  #attend(task: UpstreamTask, answer: ServerResponse): void {
    task.streams.add(answer);
    answer.on("close", () => task.streams.delete(answer));
  }

  #begin({ answer, dialect, mode, operation, params, rpcId }: Asked): void {
    const { message } = params;
    const label = message?.parts[0]?.text ?? "";
    const isChosen = dialect === "0.1" || dialect === "xiaoyi";
    const id = isChosen && params.id !== undefined ? params.id : `up-${++this.#count}`;
    const context = params.sessionId ?? message?.contextId ?? "context";
    const task: UpstreamTask = {
      ...{ id, context, label, dialect, mode, frames: [], streams: new Set(), waiting: [] },
      ...{ pieces: 0, state: "working" },
    };
    this.tasks.set(id, task);
    this.requests.push(`${label} ${operation}`);
    this.#add(task, { state: "working" });
    if (operation === "send") {
      const { blocking, returnImmediately } = params.configuration ?? {};
      const wire = dialect === "1.0" ? { task: taskOf(task) } : taskOf(task);
      if (blocking === false || returnImmediately === true) this.#send(answer, task, wire, rpcId);
      else task.waiting.push(answer);
      return;
    }
    answer.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    this.#write(answer, task, frameOf(task, { state: "working" }), 1);
    this.#attend(task, answer);
  }
}
