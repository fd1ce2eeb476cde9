import { randomBytes } from "node:crypto";
import { type Fields, fieldsOf, isObject, listOf } from "../../core/model/json.ts";
import { isInterrupted, isTerminal, type TaskState } from "../../core/model/task.ts";
import { fail, NotShown, notShown } from "./check.ts";
import { show, textOf } from "./json.ts";
import type { Observations } from "./observations.ts";
import { type ErrorName, isError } from "./peers/errors.ts";
import type {
  CallFailure,
  CallOptions,
  CallResult,
  Frame,
  OpenStream,
  OperationName,
  Peer,
  StreamingName,
  WireError,
} from "./peers/peer.ts";
import type { DeclaredCapabilities } from "./read-card.ts";
import type { Version } from "./requirements.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

/** Behaviours that agents are asked for by the prefix of the message's id and text, as in the public kits. */
type Behaviour =
  | "tck-complete-task"
  | "tck-artifact-text"
  | "tck-message-response"
  | "tck-input-required"
  | "tck-auth-required"
  | "tck-delayed-complete"
  | "tck-long-running"
  | "tck-cancel"
  | "tck-stream-001"
  | "test-resubscribe-message-id";

interface CheckContextOptions {
  readonly declared: DeclaredCapabilities;
  readonly webhooks: WebhookReceiver;
  readonly hasOtherCaller: boolean;
  /** The connection identifies the caller, whatever the headers of a request are. */
  readonly hasCertificate: boolean;
  readonly hasCredentials: boolean;
  /** How long a task may take to reach the state that a check waits for. */
  readonly patienceMs: number;
}

export interface SeenTask {
  readonly id: string;
  readonly contextId: string;
  readonly state: string;
  readonly value: Fields;
}

type SendOutcome = { readonly task: SeenTask } | { readonly message: Fields };

/** One interface of the agent, with helpers that bring it into the state a check needs. */
export class CheckContext {
  readonly peer: Peer;
  readonly observations: Observations;
  readonly options: CheckContextOptions;
  readonly #openTasks = new Set<string>();
  readonly #once = new Map<string, Promise<unknown>>();

  constructor(peer: Peer, observations: Observations, options: CheckContextOptions) {
    this.peer = peer;
    this.observations = observations;
    this.options = options;
  }

  get version(): Version {
    return this.peer.target.version;
  }

  get declared(): DeclaredCapabilities {
    return this.options.declared;
  }

  message(behaviour: Behaviour | "conformance", more: Fields = {}): Fields {
    return {
      messageId: `${behaviour}-${randomSuffix()}`,
      role: "ROLE_USER",
      parts: [{ text: `${behaviour} (conformance check)` }],
      ...more,
    };
  }

  call(operation: OperationName, params: Fields, options?: CallOptions): Promise<CallResult> {
    return this.peer.call(operation, params, options);
  }

  open(operation: StreamingName, params: Fields, options?: CallOptions): Promise<OpenStream | CallFailure> {
    return this.peer.open(operation, params, options);
  }

  /** The result; fails with the server's error if the request was refused. */
  async result(operation: OperationName, params: Fields, options?: CallOptions): Promise<unknown> {
    const answer = await this.call(operation, params, options);
    return answer.ok ? answer.result : fail(`${operation} was refused: ${showError(answer.error)}`);
  }

  /** Sends a message; fails unless the response is a task or a message. */
  async send(message: Fields, configuration?: Fields): Promise<SendOutcome> {
    const params = configuration === undefined ? { message } : { message, configuration };
    return this.readOutcome(await this.result("SendMessage", params));
  }

  readOutcome(sent: unknown): SendOutcome {
    const { message, task } = fieldsOf(sent);
    if (isObject(task)) return { task: this.recordTask(task) };
    return isObject(message) ? { message } : fail(`a send is answered with neither task nor message: ${show(sent)}`);
  }

  async task(message: Fields, configuration?: Fields): Promise<SeenTask> {
    return requireTask(await this.send(message, configuration));
  }

  async get(id: string, more: Fields = {}): Promise<SeenTask> {
    return this.recordTask(fieldsOf(await this.result("GetTask", { id, ...more })));
  }

  /** A completed task, shared by all checks that only read it. */
  completedTask(): Promise<SeenTask> {
    return this.once("completed", () => this.newCompletedTask());
  }

  /** Runs requests that are invalid on purpose: responses are validated only by the check itself. */
  async withoutValidation<T>(body: () => Promise<T>): Promise<T> {
    this.observations.paused = true;
    try {
      return await body();
    } finally {
      this.observations.paused = false;
    }
  }

  /** Runs `create` for the first caller and shares its result with all others. */
  once<T>(what: string, create: () => Promise<T>): Promise<T> {
    const created = (this.#once.get(what) as Promise<T> | undefined) ?? create();
    this.#once.set(what, created);
    return created;
  }

  async newCompletedTask(more: Fields = {}): Promise<SeenTask> {
    const task = await this.task(this.message("tck-complete-task", more));
    return task.state === "TASK_STATE_COMPLETED"
      ? task
      : notShown(`the agent does not complete a simple task: it is ${task.state}`);
  }

  async pausedTask(): Promise<SeenTask> {
    const task = await this.task(this.message("tck-input-required"));
    return task.state === "TASK_STATE_INPUT_REQUIRED" ? task : notShown("the agent never requires input");
  }

  /** A task that the agent is still working on. */
  async runningTask(behaviours: readonly Behaviour[] = LASTING_BEHAVIOURS): Promise<SeenTask> {
    for (const behaviour of behaviours) {
      const task = await this.#startTask(this.message(behaviour));
      if (task !== undefined && !isTerminalState(task.state) && !isInterruptedState(task.state)) return task;
    }
    return notShown("the agent ends its tasks at once");
  }

  /** A task that can be cancelled or subscribed to, whether it is running or interrupted. */
  async openTask(): Promise<SeenTask> {
    const running = await undefinedIfNotShown(this.runningTask(["tck-cancel"]));
    return running ?? (await undefinedIfNotShown(this.pausedTask())) ?? notShown("the agent ends its tasks at once");
  }

  /** gRPC of 0.3 has no field for returning immediately, so the first event of a stream is used there. */
  async #startTask(message: Fields): Promise<SeenTask | undefined> {
    if (this.peer.binding !== "GRPC" || this.version === "1.0") {
      const sent = await this.send(message, { returnImmediately: true });
      return "task" in sent ? sent.task : undefined;
    }
    if (!this.declared.streaming) return undefined;
    const stream = await this.stream("SendStreamingMessage", { message });
    const first = await stream.next();
    stream.close();
    return isObject(first?.event.task) ? this.recordTask(first.event.task) : undefined;
  }

  async stream(operation: StreamingName, params: Fields, options?: CallOptions): Promise<OpenStream["frames"]> {
    const opened = await this.open(operation, params, options);
    return opened.ok === "stream" ? opened.frames : fail(`${operation} gave no stream: ${showError(opened.error)}`);
  }

  /** All events until the stream ends. An error among them is a failure. */
  async events(frames: OpenStream["frames"]): Promise<Fields[]> {
    return (await frames.rest(this.options.patienceMs)).map(eventOf);
  }

  requireStreaming(): void {
    if (!this.declared.streaming) notShown("the card does not offer streaming");
  }

  requirePush(): void {
    if (!this.declared.push) notShown("the card does not offer push notifications");
  }

  /** Cancels a task, which may have ended meanwhile. */
  async cancel(id: string): Promise<SeenTask> {
    const answer = await this.call("CancelTask", { id });
    if (answer.ok) return this.recordTask(fieldsOf(answer.result));
    await this.#notShownIfEnded(id);
    return fail(`CancelTask was refused: ${showError(answer.error)}`);
  }

  /** Subscribes to a task, which may have ended meanwhile. */
  async subscribe(id: string): Promise<OpenStream["frames"]> {
    const opened = await this.open("SubscribeToTask", { id });
    if (opened.ok === "stream") return opened.frames;
    await this.#notShownIfEnded(id);
    return fail(`SubscribeToTask gave no stream: ${showError(opened.error)}`);
  }

  async #notShownIfEnded(id: string): Promise<void> {
    const { state } = await this.get(id);
    if (isTerminalState(state) && state !== "TASK_STATE_CANCELED") notShown("the agent ended its task by itself");
  }

  /** Polls the task until it has ended. */
  async waitUntilEnded(id: string): Promise<SeenTask> {
    const until = Date.now() + this.options.patienceMs;
    for (;;) {
      const task = await this.get(id);
      if (isTerminalState(task.state)) return task;
      if (Date.now() > until) return fail(`the task does not end; it is ${task.state}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Fails unless the request is refused with that error, and records how the error is encoded. */
  async expectError(
    expected: ErrorName,
    operation: OperationName,
    params: Fields,
    options?: CallOptions,
  ): Promise<WireError> {
    const answer = await this.call(operation, params, options);
    if (answer.ok) fail(`${operation} was not refused as ${expected}: ${show(answer.wire)}`);
    return this.checkError(expected, answer.error, operation);
  }

  async expectStreamError(expected: ErrorName, operation: StreamingName, params: Fields): Promise<WireError> {
    const opened = await this.open(operation, params);
    if (opened.ok !== "stream") return this.checkError(expected, opened.error, operation);
    const first = await opened.frames.next();
    opened.frames.close();
    // 0.3 does not specify that an error is sent instead of a stream.
    if (first?.error !== undefined && this.version === "0.3") return this.checkError(expected, first.error, operation);
    return fail(
      first?.error === undefined
        ? `${operation} was not refused as ${expected}: a stream began with ${show(first?.wire)}`
        : `${operation} was refused within a stream, not instead of one: ${showError(first.error)}`,
    );
  }

  checkError(expected: ErrorName, error: WireError, operation: string): WireError {
    if (!isError(error, expected, this.peer.binding, this.version))
      fail(`${operation} was refused, but not as ${expected}: ${showError(error)}`);
    this.observations.recordError(expected, error);
    return error;
  }

  recordTask(task: Fields): SeenTask {
    const { contextId, id, status } = task;
    const seen: SeenTask = {
      id: textOf(id) ?? fail(`a task without an id: ${show(task)}`),
      contextId: textOf(contextId) ?? "",
      state: textOf(fieldsOf(status).state) ?? "",
      value: task,
    };
    if (isTerminalState(seen.state)) this.#openTasks.delete(seen.id);
    else this.#openTasks.add(seen.id);
    return seen;
  }

  /** Cancels tasks that checks left open, so that none stays running at the agent. */
  async cancelOpenTasks(): Promise<void> {
    for (const id of this.#openTasks) await this.call("CancelTask", { id }).catch(() => undefined);
    this.#openTasks.clear();
  }
}

/** The task that was answered with; not shown for agents that answer without one. */
export function requireTask(sent: SendOutcome): SeenTask {
  return "task" in sent ? sent.task : notShown("the agent answers without a task");
}

const LASTING_BEHAVIOURS: readonly Behaviour[] = ["tck-cancel", "test-resubscribe-message-id", "tck-long-running"];

/** An id that nothing has yet. */
export function newId(): string {
  return `conformance-${randomSuffix()}`;
}

export function randomSuffix(): string {
  return randomBytes(4).toString("hex");
}

/** The event of a frame; an error frame is a failure. */
export function eventOf(frame: Frame): Fields {
  return frame.error === undefined ? frame.event : fail(`the stream ended in an error: ${showError(frame.error)}`);
}

export function stateOfEvent(event: Fields): string | undefined {
  const { statusUpdate, task } = event;
  return textOf(fieldsOf(fieldsOf(statusUpdate ?? task).status).state);
}

export function isTerminalState(state: string | undefined): boolean {
  return state !== undefined && isTerminal(state as TaskState);
}

export function isInterruptedState(state: string | undefined): boolean {
  return state !== undefined && isInterrupted(state as TaskState);
}

export function historyOf(task: SeenTask): readonly Fields[] {
  return listOf(task.value.history).map(fieldsOf);
}

export function showError({ code, details, message, name }: WireError): string {
  const suffix = details.length === 0 ? "" : ` ${show(details)}`;
  return `${code}${name === undefined ? "" : ` ${name}`} ${show(message)}${suffix}`;
}

/** For callers with alternatives: a state that the server cannot be created into is not a failure. */
async function undefinedIfNotShown<T>(attempt: Promise<T>): Promise<T | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof NotShown) return undefined;
    throw error;
  }
}
