import { CommandError, usageError } from "../../../core/cli/errors.ts";
import { type Output, printJson } from "../../../core/cli/output.ts";
import { INDENT, table } from "../../../core/cli/render/text.ts";
import { sleep } from "../../../core/model/backoff.ts";
import { formatDuration } from "../../../core/model/duration.ts";
import type { Clock } from "../../../core/model/ports.ts";
import { safeLine, safeText } from "../../../core/model/safe-text.ts";
import {
  describeViolation,
  type Notification,
  type Screen,
  type SimulatedTask,
  type Simulator,
  type SimulatorEvent,
  withTimeout,
} from "../simulator/index.ts";
import { PHONE_COMMANDS, type PhoneContext, phoneHelp } from "./phone-commands.ts";

interface PhoneTerminalOptions {
  readonly output: Output;
  readonly simulator: Simulator;
  readonly clock: Clock;
  readonly json: boolean;
  /** How long the agent may take to connect. */
  readonly timeoutMs: number;
}

/** A text interface to the phone: reads lines, prints what the screen shows. */
export class PhoneTerminal implements PhoneContext {
  readonly simulator: Simulator;
  readonly #options: PhoneTerminalOptions;
  unanswered = 0;
  /** The state in which each task was last shown, so that it is shown once each time it settles. */
  readonly #shown = new WeakMap<SimulatedTask, string>();

  constructor(options: PhoneTerminalOptions) {
    this.#options = options;
    this.simulator = options.simulator;
    options.simulator.subscribe((event) => this.#handleEvent(event));
  }

  /**
   * Executes a line; false if it was the last one. If `waits`, a message is sent only once the agent is connected, and
   * its response is awaited.
   */
  async handleLine(line: string, waits: boolean): Promise<boolean> {
    const text = line.trim();
    if (text === "/quit") return false;
    if (text.startsWith("/")) await this.#runCommand(text.slice(1), waits);
    else if (text !== "" && !text.startsWith("#")) {
      if (waits) await this.waitForAgent();
      this.simulator.phone.say(text);
      if (waits) await this.wait();
    }
    return true;
  }

  /** Needs no timeout: the phone gives up by itself when nothing arrives. */
  async wait(): Promise<void> {
    await this.simulator.phone.current?.waitUntilSettled();
  }

  async waitForAgent(): Promise<void> {
    const { clock, timeoutMs } = this.#options;
    // The agent may have disconnected again before the wait resumes.
    const connected = async (): Promise<void> => {
      while (!this.simulator.isReady) await this.simulator.ready();
    };
    await withTimeout(clock, timeoutMs, connected(), () => {
      const message = `The agent did not connect within ${formatDuration(timeoutMs)}.`;
      return new CommandError("A2ACLI_ERR_TIMEOUT", message, "Allow more time with --timeout.");
    });
  }

  pause(milliseconds: number): Promise<void> {
    return sleep(this.#options.clock, milliseconds);
  }

  printAnswer(what: string, answer: string): void {
    const { json, output } = this.#options;
    if (json) printJson(output, { [what]: answer }, "line");
    else output.write(renderTag(what, answer));
  }

  show(): void {
    const task = this.simulator.phone.current;
    if (task !== undefined) this.#print(task);
  }

  async #runCommand(line: string, waits: boolean): Promise<void> {
    const { output } = this.#options;
    const [name = "", ...rest] = line.split(" ");
    const command = Object.hasOwn(PHONE_COMMANDS, name) ? PHONE_COMMANDS[name] : undefined;
    if (name === "help") output.info(table(phoneHelp(), "  ").trimEnd().split("\n"));
    else if (command === undefined) output.info(`Unknown command /${name}; /help lists all.`);
    else {
      if (command.needs === "link" && this.simulator.cloud !== undefined) {
        throw usageError(`/${name} works only with agents that dial: with --http there is no connection.`);
      }
      if (command.needs === "agent" && waits) await this.waitForAgent();
      await command.run(this, rest.join(" ").trim());
    }
  }

  #handleEvent(event: SimulatorEvent): void {
    const { json, output } = this.#options;
    switch (event.kind) {
      case "task":
        this.#handleTask(event.task);
        break;
      case "violation":
        if (json) printJson(output, { violation: event.violation }, "line");
        output.warn(describeViolation(event.violation));
        break;
      case "connection":
        output.info(describeConnection(event.connection), "dim");
        break;
      case "notification":
        if (json) printJson(output, { notification: event.notification }, "line");
        else output.write(renderNotification(event.notification));
        break;
    }
  }

  #handleTask(task: SimulatedTask): void {
    const isSettled = !task.isOpen || task.asks;
    const state = isSettled ? (task.ending ?? "asks") : "";
    if (this.#shown.get(task) === state) return;
    this.#shown.set(task, state);
    if (task.isUnanswered) this.unanswered++;
    if (task.ending === "superseded") this.#options.output.info("An older message was superseded.");
    else if (isSettled) this.#print(task);
  }

  #print(task: SimulatedTask): void {
    const { json, output } = this.#options;
    if (json) printJson(output, screenToJson(task), "line");
    else output.write(renderScreen(task.screen()));
  }
}

function describeConnection({
  code,
  hostIndex,
  kind,
}: Extract<SimulatorEvent, { kind: "connection" }>["connection"]): string {
  const where = hostIndex === 0 ? "" : " on the second server";
  switch (kind) {
    case "connected":
      return `The agent has connected${where}.`;
    case "ready":
      return `The agent has introduced itself${where}.`;
    case "closed":
      return `The connection of the agent was closed with ${code}${where}.`;
  }
}

/** What the phone shows for a task: the answer, everything else in brackets. */
function renderScreen(screen: Screen): string {
  const { data, failure, files, notes, painted, state, statusBar, text, thinking } = screen;
  return [
    ...notes.map((note) => renderTag("entry", note)),
    ...(thinking === undefined ? [] : [renderTag(thinking.folded ? "thoughts, folded" : "thinking", thinking.text)]),
    ...(screen.dots ? ["[...]\n"] : []),
    ...(text === "" ? [] : [painted ? renderAnswer(text) : renderTag("not shown before the end", text)]),
    ...data.map((part) => renderTag("data", JSON.stringify(part))),
    ...files.map(({ mimeType, name, shown }) => renderTag(shown ? "file" : "file, not shown", `${name} (${mimeType})`)),
    ...(statusBar === "" ? [] : [renderTag("status", statusBar)]),
    ...(failure === undefined ? [] : [renderTag("failed", failure)]),
    ...(state === "completed" || failure !== undefined ? [] : [`[${state}]\n`]),
  ].join("");
}

function renderNotification({ cut, directives, pushDataId, text, title }: Notification): string {
  return [
    renderTag("notification", cut ? `${title}…` : title),
    ...(text === undefined ? [] : [renderTag("behind it", text)]),
    ...(pushDataId === undefined ? [] : [renderTag("asks for", pushDataId)]),
    ...directives.map((directive) => renderTag("command", JSON.stringify(directive))),
  ].join("");
}

/** Its name in the JSON, which scripts read. */
const USER_TEXT = "said";

function screenToJson(task: SimulatedTask): object {
  const { conversationId, ending, id, ignored, userText, shown } = task;
  return {
    task: { id, conversationId, [USER_TEXT]: userText, ending: ending ?? null, shown, ignored },
    screen: task.screen(),
  };
}

/** A line that reads like one of ours is indented. */
function renderAnswer(text: string): string {
  return `${safeText(text).replace(/\n$/, "").replace(/^\[/gm, `${INDENT}[`)}\n`;
}

function renderTag(tag: string, text: string): string {
  return `[${tag}] ${safeLine(text)}\n`;
}
