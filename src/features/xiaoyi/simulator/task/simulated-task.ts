import type { Clock } from "../../../../core/model/ports.ts";
import type { PlatformTraits } from "../options.ts";
import type { Report } from "../violations.ts";
import { ChangeNotifier, watchSilence } from "../waiting.ts";
import { type ArtifactUpdate, findDataFault, type ResponseError, type State, type Update } from "./decode-response.ts";
import { fileIdsIn, type Screen, ScreenRenderer } from "./screen.ts";

/** The app's message when an agent cannot be reached or stays silent. */
export const AGENT_IS_AWAY = "小艺开小差了，请稍后再试";

/**
 * Why nothing more of a task is shown: the agent's `final`, an error without a result, the user's cancellation, a newer
 * message of the same conversation, silence, no agent available, a connection that broke, or one that the phone closed.
 */
type Ending = "final" | "error" | "canceled" | "superseded" | "silence" | "away" | "broken" | "left";

const UNANSWERED: ReadonlySet<Ending | undefined> = new Set(["silence", "away", "broken"]);

export interface TaskRules extends Pick<PlatformTraits, "profile" | "silenceMs" | "textLimit"> {
  readonly clock: Clock;
  /** A question ends the stream of its turn, but not the task. On a link everything stays open. */
  readonly questionsEndStreams: boolean;
  readonly report: Report;
  readonly isUploaded: (fileId: string) => boolean;
  readonly onChange: (task: SimulatedTask) => void;
}

interface TaskOrigin {
  readonly id: string;
  readonly conversationId: string;
  /** Id of the request being answered; the user's answer to a question has the same one. */
  readonly requestId: string;
  readonly userText: string;
}

/** One turn of the user as seen by the phone, from the message to the end of its channel. */
export class SimulatedTask implements TaskOrigin {
  readonly id: string;
  readonly conversationId: string;
  readonly requestId: string;
  readonly userText: string;
  /** Updates that had an effect. */
  shown = 0;
  /** Updates received after the task was closed. */
  ignored = 0;
  /** Updates sent again because the agent could not know that the end had arrived; phones ignore them. */
  repeated = 0;
  /** Updates of this turn with `final:true`. */
  finals = 0;
  state: State = "submitted";
  ending: Ending | undefined;
  readonly #rules: TaskRules;
  readonly #renderer: ScreenRenderer;
  readonly #changes = new ChangeNotifier();
  #failure: string | undefined;
  /** An update of this turn was shown. */
  #begun = false;
  #turnIsOver = false;
  #lastReceivedAt = 0;
  #stopSilenceTimer = (): void => {};

  constructor(origin: TaskOrigin, rules: TaskRules) {
    this.id = origin.id;
    this.conversationId = origin.conversationId;
    this.requestId = origin.requestId;
    this.userText = origin.userText;
    this.#rules = rules;
    this.#renderer = new ScreenRenderer(rules.profile);
    this.#watchSilence();
  }

  get isOpen(): boolean {
    return this.ending === undefined;
  }

  get isUnanswered(): boolean {
    return UNANSWERED.has(this.ending);
  }

  get asks(): boolean {
    return this.isOpen && this.state === "input-required";
  }

  screen(): Screen {
    return this.#renderer.screen(this.state, this.#failure);
  }

  /** Resolves when the condition holds; it is evaluated after every change of this task. */
  waitUntil(isSo: (task: SimulatedTask) => boolean): Promise<void> {
    return this.#changes.waitUntil(() => isSo(this));
  }

  /** Ended, or waiting for the user. */
  waitUntilSettled(): Promise<void> {
    return this.waitUntil((task) => !task.isOpen || task.asks);
  }

  receive(update: Update, error?: ResponseError): void {
    if (update.final) this.finals++;
    if (this.ending === undefined && !this.#turnIsOver) this.#show(update, error);
    else this.#ignore(update, this.ending ?? "final");
    this.#changed();
  }

  /** Does not change the screen. */
  countRepeated(): void {
    this.repeated++;
    this.#changes.notify();
  }

  /** An error in place of a result also ends the task. */
  fail(error: ResponseError): void {
    if (this.isOpen) {
      this.state = "failed";
      this.#failure = error.message === "" ? AGENT_IS_AWAY : error.message;
      this.end("error");
    } else {
      this.ignored++;
      if (this.ending === "final" || this.ending === "error") this.#report("content-after-final", "An error came.");
    }
    this.#changed();
  }

  resume(): void {
    this.state = "submitted";
    this.finals = 0;
    this.#begun = false;
    this.#turnIsOver = false;
    this.#watchSilence();
    this.#changed();
  }

  end(ending: Ending): void {
    if (!this.isOpen) return;
    this.ending = ending;
    this.#stopSilenceTimer();
    if (ending === "canceled") this.state = "canceled";
    if (this.isUnanswered || ending === "left") this.#failure = AGENT_IS_AWAY;
    // If nothing was received, the message may never have reached the agent.
    if (ending === "silence" && this.#begun) this.#report("no-final", "Nothing more came.");
    this.#changed();
  }

  reenter(): void {
    this.#renderer.reenter();
    this.#changed();
  }

  #show(update: Update, error: ResponseError | undefined): void {
    this.#check(update);
    this.shown++;
    this.#begun = true;
    this.#lastReceivedAt = this.#rules.clock.now();
    this.#renderer.apply(update);
    if (update.kind === "status-update") this.state = update.state;
    if (error !== undefined) {
      this.state = "failed";
      this.#failure = error.message === "" ? undefined : error.message;
    }
    if (!update.final) return;
    this.#turnIsOver = true;
    if (this.state === "input-required" && this.#rules.questionsEndStreams) return;
    // The last artifact ends a task just like a final status.
    if (update.kind === "artifact-update" && !isTerminal(this.state)) this.state = "completed";
    this.end("final");
  }

  #ignore(update: Update, ending: Ending): void {
    this.ignored++;
    if (update.final && this.finals > 1) this.#report("two-finals", `There were ${this.finals}.`);
    else if (ending === "final" || ending === "error") this.#report("content-after-final", `A ${update.kind} came.`);
  }

  #check(update: Update): void {
    const length = textLength(update);
    if (length > this.#rules.textLimit) this.#report("text-too-long", `It has ${length} characters.`);
    if (update.kind === "status-update") {
      const endsAsking = update.final && update.state === "input-required";
      if (endsAsking && !this.#rules.questionsEndStreams) this.#report("final-while-asking", "");
      return;
    }
    if (blanksScreen(update)) this.#report("blanking-final", "");
    for (const part of update.parts) {
      if (part.kind === "data") {
        const fault = findDataFault(part.data);
        if (fault !== undefined) this.#report("bad-data-part", fault);
        for (const id of fileIdsIn(part.data)) this.#checkFile(id);
      } else if (part.kind === "file" && part.file.fileId !== undefined) this.#checkFile(part.file.fileId);
    }
  }

  #checkFile(fileId: string): void {
    if (!this.#rules.isUploaded(fileId)) this.#report("unknown-file", `It is ${JSON.stringify(fileId)}.`);
  }

  #report(rule: Parameters<Report>[0], detail: string): void {
    this.#rules.report(rule, detail, this.id);
  }

  #watchSilence(): void {
    const { clock, silenceMs } = this.#rules;
    this.#stopSilenceTimer();
    this.#lastReceivedAt = clock.now();
    this.#stopSilenceTimer = watchSilence(
      clock,
      silenceMs,
      () => this.#lastReceivedAt,
      () => {
        if (!this.asks) this.end("silence");
      },
    );
  }

  #changed(): void {
    this.#changes.notify();
    this.#rules.onChange(this);
  }
}

function isTerminal(state: State): boolean {
  return state === "completed" || state === "failed" || state === "canceled";
}

function blanksScreen({ append, final, parts }: ArtifactUpdate): boolean {
  return final && !append && parts.every((part) => part.kind === "text" && part.text === "");
}

/** Total text of a frame, in characters as users count them. The limit for data is not known. */
export function textLength(update: Update): number {
  if (update.kind === "status-update") return countCharacters(update.text ?? "");
  return update.parts.reduce((sum, part) => sum + ("text" in part ? countCharacters(part.text) : 0), 0);
}

/** Counts code points, not code units. */
const countCharacters = (text: string): number => [...text].length;
