import type { Clock } from "../../model/ports.ts";
import type { ControlAnswer, Phone } from "../phone.ts";
import type { Random } from "../random.ts";
import type { Simulator } from "../simulator.ts";
import type { SimulatedTask } from "../task/simulated-task.ts";

/** What to say to bring an agent to where something can be seen. Which words do that is for the agent to know. */
export interface Phrases {
  readonly plain: string;
  /** Answered in several pieces. */
  readonly streamed: string;
  /** Answered after a while, so that there is something to interrupt. */
  readonly slow: string;
  /** Answered with a question. */
  readonly asking: string;
  /** The user's answer to that. */
  readonly reply: string;
  /** Answered with more than one frame can carry. */
  readonly long: string;
  /** With a number after it: something to keep in mind. */
  readonly memorable: string;
  /** Answered with that number, as long as the agent has it in mind. */
  readonly recalling: string;
}

/** Words for agents that understand people, after those that the built-in conformance agent goes by. */
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
  /** What must be on the screen in the end, for agents of which that is known. */
  readonly expected?: (said: string) => string;
  /** How long anything may take. */
  readonly patienceMs?: number;
  readonly disconnects?: number;
  /** How long a connection holds before it is lost: agents wait longer each time for one that never does. */
  readonly steadyMs?: number;
  readonly crowd?: number;
  /** How long to listen for more after the end; what is wrong with an answer may come after it. */
  readonly quietMs?: number;
}

const QUIET_MS = 500;

/** The agent did something wrong. */
export class ScenarioFailure extends Error {
  override readonly name = "ScenarioFailure";
}

/** The agent could not be brought to where it could be seen. */
export class NotShown extends Error {
  override readonly name = "NotShown";
}

/** What a scenario works with: a platform, something to say, and checks. */
export class ScenarioContext {
  readonly simulator: Simulator;
  /** One of this scenario's own: what another has left unfinished is no concern of it. */
  readonly phone: Phone;
  readonly phrases: Phrases;
  readonly random: Random;
  readonly disconnects: number;
  readonly steadyMs: number;
  readonly crowd: number;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #quietMs: number;
  readonly #expected: ((said: string) => string) | undefined;

  /** Takes down what is unusual, but no rule that could be cited. */
  readonly note: (text: string) => void;

  constructor(simulator: Simulator, options: ScenarioOptions, note: (text: string) => void) {
    this.note = note;
    this.simulator = simulator;
    this.phone = this.addPhone();
    this.phrases = { ...DEFAULT_PHRASES, ...options.phrases };
    this.random = options.random;
    this.disconnects = options.disconnects ?? 100;
    this.steadyMs = options.steadyMs ?? 0;
    this.crowd = options.crowd ?? 1000;
    this.#clock = options.clock;
    this.#patienceMs = options.patienceMs ?? 60_000;
    this.#quietMs = options.quietMs ?? QUIET_MS;
    this.#expected = options.expected;
  }

  /** Another device of the kind that the simulator has. */
  addPhone(): Phone {
    const { device, variables } = this.simulator.phone;
    return this.simulator.addPhone({ device, variables });
  }

  /** Fails if it takes too long. */
  async within<T>(promise: Promise<T>, what: string): Promise<T> {
    let stop = (): void => {};
    const late = new Promise<never>((_resolve, reject) => {
      stop = this.#clock.after(this.#patienceMs, () => reject(new ScenarioFailure(`${what} took too long.`)));
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      stop();
    }
  }

  /** What no document asks for: where it fails, that is a note. */
  async attempt(what: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof ScenarioFailure)) throw error;
      this.note(`Note: ${what}: ${error.message}`);
    }
  }

  pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(milliseconds, resolve);
    });
  }

  /** Listens for what should not come, until it has come or long enough. */
  async waitForQuiet(unwanted: Promise<void> = new Promise(() => {})): Promise<void> {
    await Promise.race([unwanted, this.pause(this.#quietMs)]);
  }

  check(isSo: boolean, otherwise: string): void {
    if (!isSo) throw new ScenarioFailure(otherwise);
  }

  /** The agent is there at this very moment: it may be gone again by the time that a wait for it is over. */
  async waitUntilReady(): Promise<void> {
    while (!this.simulator.isReady) await this.within(this.simulator.ready(), "Waiting for the agent to connect");
  }

  /** Says something as soon as there is somebody to say it to. */
  async say(phone: Phone, text: string): Promise<SimulatedTask> {
    await this.waitUntilReady();
    return phone.say(text);
  }

  async ask(phone: Phone, text: string): Promise<SimulatedTask> {
    const task = await this.say(phone, text);
    await this.expectAnswer(task);
    return task;
  }

  /** Ended once, with the right words on the screen. */
  async expectAnswer(task: SimulatedTask): Promise<void> {
    await this.expectEnd(task, task.said);
    const { text } = task.screen();
    const expected = this.#expected?.(task.said) ?? text;
    this.check(
      text === expected,
      `The answer to ${shorten(task.said)} shows ${shorten(text)} instead of ${shorten(expected)}.`,
    );
  }

  /** As `answered`, for what the user said last; the question may still stand above it. */
  async expectReply(task: SimulatedTask, said: string): Promise<void> {
    await this.expectEnd(task, said);
    const { text } = task.screen();
    const expected = this.#expected?.(said) ?? "";
    this.check(
      text.endsWith(expected),
      `The answer to ${shorten(said)} shows ${shorten(text)} without ${shorten(expected)}.`,
    );
  }

  async expectEnd(task: SimulatedTask, said: string): Promise<void> {
    await this.within(task.waitUntilSettled(), `The answer to ${shorten(said)}`);
    const how = task.ending ?? task.state;
    this.check(task.ending === "final", `${shorten(said)} was not answered to its end, but: ${how}.`);
    this.check(task.state === "completed", `${shorten(said)} ended as ${task.state}.`);
    this.check(task.finals === 1, `${shorten(said)} was ended ${task.finals} times.`);
    this.check(task.screen().text !== "", `The answer to ${shorten(said)} shows no text.`);
  }

  /** Something of the task is shown, or it is over. */
  async waitForFirstUpdate(task: SimulatedTask): Promise<void> {
    const sign = task.waitUntil(({ isOpen, shown }) => !isOpen || shown > 0);
    await this.within(sign, `The first sign of an answer to ${shorten(task.said)}`);
  }

  /** The text that is shown in the end, whatever it is. */
  async askAndRead(phone: Phone, text: string): Promise<string> {
    const task = await this.say(phone, text);
    await this.expectEnd(task, text);
    return task.screen().text;
  }

  /** False if there was nothing left to cancel; agents may know that earlier than the phone does. */
  async tryCancel(phone: Phone, task: SimulatedTask): Promise<boolean> {
    await this.waitForFirstUpdate(task);
    if (!task.isOpen) return false;
    const answer = await this.within(phone.cancel(), "Waiting for canceled");
    if (answer === "unknown" || answer === "failed") {
      const { text } = task.screen();
      await this.within(task.waitUntilSettled(), `The end of ${shorten(task.said)}`);
      if (task.ending === "final" && task.screen().text === text) return false;
    }
    this.#checkAnswer(answer, "canceled");
    return true;
  }

  async clearContext(phone: Phone): Promise<void> {
    this.#checkAnswer(await this.within(phone.clear(), "Waiting for cleared"), "cleared");
  }

  #checkAnswer(given: ControlAnswer, wanted: ControlAnswer): void {
    this.check(given === wanted, `The agent answered ${given} instead of ${wanted}.`);
  }

  /** Resolves after so many changes of any task. */
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
      await this.within(enough, "Waiting for the agent to say something");
    } finally {
      stop();
    }
  }

  /** A whole number from 0 to one below the limit. */
  randomInt(limit: number): number {
    return Math.floor(this.random() * limit);
  }
}

const MAX_SHOWN_LENGTH = 40;

/** The end tells as much as the beginning: what is missing is mostly missing there. */
export function shorten(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH
    ? `"${text}"`
    : `"${text.slice(0, MAX_SHOWN_LENGTH / 2)}…${text.slice(-MAX_SHOWN_LENGTH / 2)}"`;
}
