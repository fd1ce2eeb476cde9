/** A caller that never gives up, and remembers every word it was told. */

import { setTimeout as pause } from "node:timers/promises";
import { EXTENSIONS } from "../../src/core/model/extensions.ts";
import type { TaskState } from "../../src/core/model/task.ts";

const ENDED: ReadonlySet<string> = new Set<TaskState>([
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
]);

interface Frame {
  readonly number: number;
  readonly json: string;
}

interface StreamResult {
  readonly task?: { readonly id: string; readonly status: { readonly state: string } };
  readonly statusUpdate?: { readonly taskId: string; readonly status: { readonly state: string } };
  readonly artifactUpdate?: { readonly taskId: string };
}

/** Where a caller finds a server now. */
export interface Target {
  readonly url: Promise<string>;
  /** Asked after each event: true makes the caller hang up and go on elsewhere. */
  leaves?(): boolean;
}

/** One task from its first message to its end, across as many lives of the server as that takes. */
export class Follower {
  readonly agent: string;
  readonly steps: number;
  readonly violations: string[] = [];
  /** Everything acknowledged, by number. */
  readonly seen = new Map<number, string>();
  id: string | undefined;
  end: string | undefined;
  reconnects = 0;
  readonly #target: Target;
  readonly #key: string;
  /** Begun with a send that is answered at once, then followed; otherwise with a stream. */
  readonly #sendsFirst: boolean;
  #last = 0;
  #asked = false;

  constructor(target: Target, agent: string, steps: number, key: string, sendsFirst: boolean) {
    this.#target = target;
    this.agent = agent;
    this.steps = steps;
    this.#key = key;
    this.#sendsFirst = sendsFirst;
  }

  /** For people who look for a task that did not end. */
  get position(): string {
    return `${this.agent} ${this.id ?? "not begun"} at ${this.#last}${this.#asked ? ", asked" : ""}`;
  }

  async run(): Promise<void> {
    while (this.end === undefined && this.violations.length === 0) {
      const url = await this.#target.url;
      try {
        if (this.id === undefined) await this.#begin(url);
        else if (this.#asked) await this.#answer(url);
        else await this.#follow(url);
      } catch (error) {
        if (!isBroken(error)) {
          this.violations.push(String(error));
          return;
        }
        this.reconnects++;
        // The refused connection tells of the death before the parent has noticed it.
        await pause(5);
      }
    }
  }

  async #begin(url: string): Promise<void> {
    const message = { messageId: this.#key, role: "ROLE_USER", parts: [{ text: String(this.steps) }] };
    const headers = { "idempotency-key": this.#key };
    if (!this.#sendsFirst) return this.#stream(url, "SendStreamingMessage", { message }, headers);
    const result = await this.#call(url, { message, configuration: { returnImmediately: true } }, headers);
    this.id = result.task?.id;
    if (this.id === undefined) this.violations.push(`no task in ${JSON.stringify(result)}`);
  }

  async #follow(url: string): Promise<void> {
    // A task that was only announced begins at 1; its first event is not sent again.
    const after = Math.max(this.#last, 1);
    this.#last = after;
    const headers = { "last-event-id": String(after), "a2a-extensions": EXTENSIONS.replay };
    await this.#stream(url, "SubscribeToTask", { id: this.id }, headers);
  }

  async #answer(url: string): Promise<void> {
    const key = `${this.#key} answer`;
    const message = { messageId: key, role: "ROLE_USER", parts: [{ text: "yes" }], taskId: this.id };
    await this.#call(url, { message, configuration: { returnImmediately: true } }, { "idempotency-key": key });
    this.#asked = false;
  }

  async #post(url: string, method: string, params: object, headers: Record<string, string>): Promise<Response> {
    return fetch(`${url}/agents/${this.agent}`, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
  }

  async #call(url: string, params: object, headers: Record<string, string>): Promise<StreamResult> {
    const response = await this.#post(url, "SendMessage", params, headers);
    const { error, result } = await readAnswer(response);
    if (isUnavailable(error)) throw new UnavailableError();
    if (result === undefined) this.violations.push(`refused: ${JSON.stringify(error)}`);
    return result ?? {};
  }

  async #stream(url: string, method: string, params: object, headers: Record<string, string>): Promise<void> {
    const response = await this.#post(url, method, params, { accept: "text/event-stream", ...headers });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      const { error } = await readAnswer(response);
      if (isUnavailable(error)) throw new UnavailableError();
      this.violations.push(`${method} was refused: ${JSON.stringify(error)}`);
      return;
    }
    for await (const frame of framesOf(response)) {
      this.#take(frame);
      if (this.#target.leaves?.() === true) return;
      // A subscription stays open over a question; it is answered first and followed again then.
      if (this.#asked) return;
    }
  }

  #take({ number, json }: Frame): void {
    if (number !== this.#last + 1) this.violations.push(`number ${number} came after ${this.#last}`);
    this.#last = number;
    this.seen.set(number, json);
    const { task, statusUpdate } = JSON.parse(json) as StreamResult;
    this.id ??= task?.id;
    const state = (task ?? statusUpdate)?.status.state;
    if (state === undefined) return;
    this.#asked = state === "TASK_STATE_INPUT_REQUIRED";
    if (ENDED.has(state)) this.end = state;
  }
}

async function readAnswer(response: Response): Promise<{ result?: StreamResult; error?: unknown }> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    // A server of another test may listen on the port of one that was killed; it takes any request.
    if (response.ok && !response.headers.has("content-type")) throw new UnavailableError();
    return { error: `${response.status} ${JSON.stringify([...response.headers])} ${text}` };
  }
}

async function* framesOf(response: Response): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data === undefined) continue;
      const { error, result } = JSON.parse(data) as { result: unknown; error?: unknown };
      // The server gave the stream up: it is resumed elsewhere.
      if (isUnavailable(error)) throw new UnavailableError();
      if (error !== undefined) throw new Error(`a stream ended with ${JSON.stringify(error)}`);
      yield { number: Number(/^id: (\d+)$/m.exec(block)?.[1]), json: JSON.stringify(result) };
    }
  }
}

/** The server says that it cannot answer now, or that it is going away. */
class UnavailableError extends Error {}

function isUnavailable(error: unknown): boolean {
  return (error as { code?: number } | undefined)?.code === UNAVAILABLE;
}

/** `UNAVAILABLE` as JSON-RPC has it. */
const UNAVAILABLE = -32053;

/** What `fetch` throws when the other side dies: before the answer, or in the middle of it. */
function isBroken(error: unknown): boolean {
  return (
    error instanceof UnavailableError ||
    error instanceof TypeError ||
    (error instanceof Error && error.name === "AbortError")
  );
}
