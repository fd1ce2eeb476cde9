import { randomBytes } from "node:crypto";
import { isObject } from "../model/json.ts";
import { isInterrupted, isTerminal, type TaskState } from "../model/task.ts";
import { fail, notShown } from "./check.ts";
import { type Fields, fieldsOf, listOf, show, textOf } from "./json.ts";
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
import type { Version } from "./requirements/index.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

/** What agents are asked to do, by the start of the message's id and of its text, as the public kits do it. */
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

/** What the card says an agent can do. */
export interface DeclaredCapabilities {
  readonly streaming: boolean;
  readonly push: boolean;
  readonly extendedCard: boolean;
  readonly inputModes: readonly string[];
  readonly requiredExtensions: readonly string[];
  readonly optionalExtensions: readonly string[];
  /** Callers must show who they are. */
  readonly authenticated: boolean;
}

interface CheckContextOptions {
  readonly declared: DeclaredCapabilities;
  readonly webhooks: WebhookReceiver;
  readonly hasOtherCaller: boolean;
  readonly hasCredentials: boolean;
  /** How long a task may take to get where a check waits for it. */
  readonly patienceMs: number;
}

export interface SeenTask {
  readonly id: string;
  readonly contextId: string;
  readonly state: string;
  readonly value: Fields;
}

type SendOutcome = { readonly task: SeenTask } | { readonly message: Fields };

/** One interface of the agent, with what checks need to bring it somewhere. */
export class CheckContext {
  readonly peer: Peer;
  readonly observations: Observations;
  readonly options: CheckContextOptions;
  readonly #made = new Set<string>();
  readonly #once = new Map<string, Promise<unknown>>();

  constructor(peer: Peer, seen: Observations, options: CheckContextOptions) {
    this.peer = peer;
    this.observations = seen;
    this.options = options;
    seen.peer = peer;
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

  /** The result, or a failure that says how the server refused. */
  async result(operation: OperationName, params: Fields, options?: CallOptions): Promise<unknown> {
    const answer = await this.call(operation, params, options);
    return answer.ok ? answer.result : fail(`${operation} was refused: ${showError(answer.error)}`);
  }

  /** Sends and insists on an answer that is a task or a message. */
  async send(message: Fields, configuration?: Fields): Promise<SendOutcome> {
    const sent = await this.result("SendMessage", withConfiguration(message, configuration));
    return this.readOutcome(sent);
  }

  readOutcome(sent: unknown): SendOutcome {
    const { message, task } = fieldsOf(sent);
    if (isObject(task)) return { task: this.recordTask(task) };
    return isObject(message) ? { message } : fail(`a send is answered with neither task nor message: ${show(sent)}`);
  }

  /** A task that the agent made of a message; not shown with agents that answer without one. */
  async task(message: Fields, configuration?: Fields): Promise<SeenTask> {
    const sent = await this.send(message, configuration);
    return "task" in sent ? sent.task : notShown("the agent answers without a task");
  }

  async get(id: string, more: Fields = {}): Promise<SeenTask> {
    return this.recordTask(fieldsOf(await this.result("GetTask", { id, ...more })));
  }

  /** A task that has completed; the same one for all who only look at it. */
  completedTask(): Promise<SeenTask> {
    return this.once("completed", () => this.newCompletedTask());
  }

  /** Something wrong on purpose: what the server makes of it is not judged beyond what the check looks at. */
  async withoutValidation<T>(body: () => Promise<T>): Promise<T> {
    this.observations.paused = true;
    try {
      return await body();
    } finally {
      this.observations.paused = false;
    }
  }

  /** What several checks look at is brought about for the first of them. */
  once<T>(what: string, bring: () => Promise<T>): Promise<T> {
    const brought = (this.#once.get(what) as Promise<T> | undefined) ?? bring();
    this.#once.set(what, brought);
    return brought;
  }

  async newCompletedTask(more: Fields = {}): Promise<SeenTask> {
    const task = await this.task(this.message("tck-complete-task", more));
    return task.state === "TASK_STATE_COMPLETED"
      ? task
      : notShown(`the agent does not complete a simple task: it is ${task.state}`);
  }

  async pausedTask(): Promise<SeenTask> {
    const task = await this.task(this.message("tck-input-required"));
    return task.state === "TASK_STATE_INPUT_REQUIRED" ? task : notShown("the agent never asks for input");
  }

  /** A task the agent is still at work on. */
  async runningTask(behaviours: readonly Behaviour[] = LASTING_BEHAVIOURS): Promise<SeenTask> {
    for (const behaviour of behaviours) {
      const task = await this.#started(this.message(behaviour));
      if (task !== undefined && !isTerminalState(task.state) && !isInterruptedState(task.state)) return task;
    }
    return notShown("the agent ends its tasks at once");
  }

  /** A task that can be cancelled or subscribed to, whether the agent works on it or waits for someone. */
  async openTask(): Promise<SeenTask> {
    const running = await undefinedIfNotShown(this.runningTask(["tck-cancel"]));
    return running ?? (await undefinedIfNotShown(this.pausedTask())) ?? notShown("the agent ends its tasks at once");
  }

  /** gRPC of 0.3 cannot say that the answer should come at once, so the first event of a stream has to do there. */
  async #started(message: Fields): Promise<SeenTask | undefined> {
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

  /** Events to the end of a stream. An error among them is a failure. */
  async events(frames: OpenStream["frames"]): Promise<Fields[]> {
    return (await frames.rest(this.options.patienceMs)).map(eventOf);
  }

  requireStreaming(): void {
    if (!this.declared.streaming) notShown("the card does not offer streaming");
  }

  requirePush(): void {
    if (!this.declared.push) notShown("the card does not offer push notifications");
  }

  /** Cancels a task, which may have come to its end meanwhile. */
  async cancel(id: string): Promise<SeenTask> {
    const answer = await this.call("CancelTask", { id });
    if (answer.ok) return this.recordTask(fieldsOf(answer.result));
    await this.#unlessEnded(id);
    return fail(`CancelTask was refused: ${showError(answer.error)}`);
  }

  /** Subscribes to a task, which may have come to its end meanwhile. */
  async subscribe(id: string): Promise<OpenStream["frames"]> {
    const opened = await this.open("SubscribeToTask", { id });
    if (opened.ok === "stream") return opened.frames;
    await this.#unlessEnded(id);
    return fail(`SubscribeToTask gave no stream: ${showError(opened.error)}`);
  }

  async #unlessEnded(id: string): Promise<void> {
    const { state } = await this.get(id);
    if (isTerminalState(state) && state !== "TASK_STATE_CANCELED") notShown("the agent ended its task by itself");
  }

  /** Reads the task until it has ended. */
  async waitUntilEnded(id: string): Promise<SeenTask> {
    const until = Date.now() + this.options.patienceMs;
    for (;;) {
      const task = await this.get(id);
      if (isTerminalState(task.state)) return task;
      if (Date.now() > until) return fail(`the task does not end; it is ${task.state}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Insists on a refusal with that error, and judges how it is told. */
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
    // 0.3 does not say that an error comes instead of a stream.
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
    if (isTerminalState(seen.state)) this.#made.delete(seen.id);
    else this.#made.add(seen.id);
    return seen;
  }

  /** Ends what checks left open, so that nothing is left running at the agent. */
  async cancelOpenTasks(): Promise<void> {
    for (const id of this.#made) await this.call("CancelTask", { id }).catch(() => undefined);
    this.#made.clear();
  }
}

const LASTING_BEHAVIOURS: readonly Behaviour[] = ["tck-cancel", "test-resubscribe-message-id", "tck-long-running"];

export function randomSuffix(): string {
  return randomBytes(4).toString("hex");
}

function withConfiguration(message: Fields, configuration: Fields | undefined): Fields {
  return configuration === undefined ? { message } : { message, configuration };
}

/** The event of a frame; an error in its place is a failure. */
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
  const told = details.length === 0 ? "" : ` ${show(details)}`;
  return `${code}${name === undefined ? "" : ` ${name}`} ${show(message)}${told}`;
}

/** A state the server could not be brought to is no failure of what asks for any of several. */
async function undefinedIfNotShown<T>(attempt: Promise<T>): Promise<T | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof Error && error.name === "NotShown") return undefined;
    throw error;
  }
}
