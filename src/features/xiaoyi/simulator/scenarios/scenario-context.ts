import { sleep } from "../../../../core/model/backoff.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import type { ControlResult, Phone } from "../phone.ts";
import type { Random } from "../random.ts";
import type { Simulator } from "../simulator.ts";
import type { SimulatedTask } from "../task/simulated-task.ts";
import { withTimeout } from "../waiting.ts";

/** Messages that trigger the behaviour a scenario needs. Their texts depend on the agent. */
export interface Phrases {
  readonly plain: string;
  /** Answered in several updates. */
  readonly streamed: string;
  /** Answered after a delay, so that it can be interrupted. */
  readonly slow: string;
  /** Answered with a question. */
  readonly asking: string;
  /** The user's answer to that question. */
  readonly reply: string;
  /** Answered with more than fits into one frame. */
  readonly long: string;
  /** Followed by a number, which the agent should remember. */
  readonly memorable: string;
  /** Answered with that number, as long as the agent remembers it. */
  readonly recalling: string;
}

/** Natural language for agents that understand it, based on the triggers of the built-in conformance agent. */
const DEFAULT_PHRASES: Phrases = {
  plain: "你好",
  streamed: "tck-stream-chunked 请慢慢写一段介绍你自己的文字",
  slow: "tck-long-running 请慢慢写一段介绍你自己的文字",
  asking: "tck-multi-turn 请先问我一个问题",
  reply: "done",
  long: "请写一篇五千字的文章",
  memorable: "请记住这个数字：",
  recalling: "我请你记住的数字是什么？",
};

export const PHRASE_NAMES = Object.keys(DEFAULT_PHRASES) as readonly (keyof Phrases)[];

export interface ScenarioOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly phrases?: Partial<Phrases>;
  /** The expected final text, for agents whose answers are predictable. */
  readonly expected?: (sent: string) => string;
  readonly patienceMs?: number;
  readonly disconnects?: number;
  /** How long a connection lasts before it is lost: agents back off longer each time if it never lasts. */
  readonly steadyMs?: number;
  readonly crowd?: number;
  /** How long to wait for further frames after the end, since a faulty one may follow it. */
  readonly quietMs?: number;
}

const DEFAULTS = { patienceMs: 60_000, disconnects: 100, steadyMs: 0, crowd: 1000, quietMs: 500 };

/** The agent violated a requirement. */
export class ScenarioFailure extends Error {
  override readonly name = "ScenarioFailure";
}

/** The agent could not be brought into the required state. */
export class NotShown extends Error {
  override readonly name = "NotShown";
}

/** What a scenario receives: a simulator, phrases and assertions. */
export class ScenarioContext {
  readonly simulator: Simulator;
  /** Owned by this scenario, so that unfinished tasks of another one do not affect it. */
  readonly phone: Phone;
  readonly phrases: Phrases;
  readonly options: ScenarioOptions & typeof DEFAULTS;

  /** Records unusual behaviour that violates no citable rule. */
  readonly note: (text: string) => void;

  constructor(simulator: Simulator, options: ScenarioOptions, note: (text: string) => void) {
    this.note = note;
    this.simulator = simulator;
    this.phone = this.addPhone();
    this.phrases = { ...DEFAULT_PHRASES, ...options.phrases };
    this.options = { ...DEFAULTS, ...options };
  }

  addPhone(): Phone {
    const { device, variables } = this.simulator.phone;
    return this.simulator.addPhone({ device, variables });
  }

  within<T>(promise: Promise<T>, what: string): Promise<T> {
    const { clock, patienceMs } = this.options;
    return withTimeout(clock, patienceMs, promise, () => new ScenarioFailure(`${what} took too long.`));
  }

  /** For what no document requires: a failure becomes a note. */
  async attempt(what: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof ScenarioFailure)) throw error;
      this.note(`Note: ${what}: ${error.message}`);
    }
  }

  pause(milliseconds: number): Promise<void> {
    return sleep(this.options.clock, milliseconds);
  }

  /** Waits until something unwanted happens or the quiet time is over. */
  async waitForQuiet(unwanted: Promise<void> = new Promise(() => {})): Promise<void> {
    await Promise.race([unwanted, this.pause(this.options.quietMs)]);
  }

  check(isSo: boolean, otherwise: string): void {
    if (!isSo) throw new ScenarioFailure(otherwise);
  }

  /** The agent is connected at this moment: it may have disconnected again by the time a wait for it resolves. */
  async waitUntilReady(): Promise<void> {
    while (!this.simulator.isReady) await this.within(this.simulator.ready(), "Waiting for the agent to connect");
  }

  /** Sends a message as soon as an agent is connected. */
  async say(phone: Phone, text: string): Promise<SimulatedTask> {
    await this.waitUntilReady();
    return phone.say(text);
  }

  async ask(phone: Phone, text: string): Promise<SimulatedTask> {
    const task = await this.say(phone, text);
    await this.expectAnswer(task);
    return task;
  }

  /** Ended once, with the expected text on the screen. */
  async expectAnswer(task: SimulatedTask): Promise<void> {
    await this.expectEnd(task, task.userText);
    const { text } = task.screen();
    const expected = this.options.expected?.(task.userText) ?? text;
    this.check(
      text === expected,
      `The answer to ${shorten(task.userText)} shows ${shorten(text)} instead of ${shorten(expected)}.`,
    );
  }

  /** Like `expectAnswer`, for the user's last message; the question may still precede the answer. */
  async expectReply(task: SimulatedTask, sent: string): Promise<void> {
    await this.expectEnd(task, sent);
    const { text } = task.screen();
    const expected = this.options.expected?.(sent) ?? "";
    this.check(
      text.endsWith(expected),
      `The answer to ${shorten(sent)} shows ${shorten(text)} without ${shorten(expected)}.`,
    );
  }

  async expectEnd(task: SimulatedTask, sent: string): Promise<void> {
    await this.within(task.waitUntilSettled(), `The answer to ${shorten(sent)}`);
    const how = task.ending ?? task.state;
    this.check(task.ending === "final", `${shorten(sent)} was not answered to its end, but: ${how}.`);
    this.check(task.state === "completed", `${shorten(sent)} ended as ${task.state}.`);
    this.check(task.finals === 1, `${shorten(sent)} was ended ${task.finals} times.`);
    this.check(task.screen().text !== "", `The answer to ${shorten(sent)} shows no text.`);
  }

  /** An update of the task is shown, or the task has ended. */
  async waitForFirstUpdate(task: SimulatedTask): Promise<void> {
    const sign = task.waitUntil(({ isOpen, shown }) => !isOpen || shown > 0);
    await this.within(sign, `The first sign of an answer to ${shorten(task.userText)}`);
  }

  /** Returns the final text, whatever it is. */
  async askAndRead(phone: Phone, text: string): Promise<string> {
    const task = await this.say(phone, text);
    await this.expectEnd(task, text);
    return task.screen().text;
  }

  /** False if there was nothing left to cancel; agents may know that before the phone does. */
  async tryCancel(phone: Phone, task: SimulatedTask): Promise<boolean> {
    await this.waitForFirstUpdate(task);
    if (!task.isOpen) return false;
    const answer = await this.within(phone.cancel(), "Waiting for canceled");
    if (answer === "unknown" || answer === "failed") {
      const { text } = task.screen();
      await this.within(task.waitUntilSettled(), `The end of ${shorten(task.userText)}`);
      if (task.ending === "final" && task.screen().text === text) return false;
    }
    this.#checkAnswer(answer, "canceled");
    return true;
  }

  async clearContext(phone: Phone): Promise<void> {
    this.#checkAnswer(await this.within(phone.clear(), "Waiting for cleared"), "cleared");
  }

  #checkAnswer(given: ControlResult, wanted: ControlResult): void {
    this.check(given === wanted, `The agent answered ${given} instead of ${wanted}.`);
  }

  async waitForChanges(count: number): Promise<void> {
    let left = count;
    if (left === 0) return;
    let stop = (): void => {};
    const enough = new Promise<void>((resolve) => {
      stop = this.simulator.subscribe((event) => {
        if (event.kind === "task" && --left === 0) resolve();
      });
    });
    try {
      await this.within(enough, "Waiting for the agent to answer");
    } finally {
      stop();
    }
  }

  randomInt(limit: number): number {
    return Math.floor(this.options.random() * limit);
  }
}

const MAX_SHOWN_LENGTH = 40;

/** Shows both ends: missing text is mostly missing at the end. */
export function shorten(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH
    ? `"${text}"`
    : `"${text.slice(0, MAX_SHOWN_LENGTH / 2)}…${text.slice(-MAX_SHOWN_LENGTH / 2)}"`;
}
