import type { Clock } from "../../model/ports.ts";
import type { Report } from "../violations.ts";
import { type ArtifactUpdate, findDataFault, type ResponseError, type State, type Update } from "./decode-response.ts";
import { fileIdsIn, type Profile, type Screen, ScreenRenderer } from "./screen.ts";

interface Waiter {
  readonly condition: () => boolean;
  readonly resolve: () => void;
}

/** Waiting for something to become true, looked at whenever something changed. */
export class ChangeNotifier {
  readonly #waiters = new Set<Waiter>();

  waitUntil(isSo: () => boolean): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.add({ condition: isSo, resolve });
    });
  }

  notify(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.condition()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

/** What the app says when an agent cannot be reached or stays silent. */
export const AGENT_IS_AWAY = "小艺开小差了，请稍后再试";

/**
 * Why nothing more is shown of a task: the agent's `final`, an error without a result, the user's cancellation, a newer
 * message of the same conversation, silence, no agent to ask, a connection that broke, or one that the phone left.
 */
type Ending = "final" | "error" | "canceled" | "superseded" | "silence" | "away" | "broken" | "left";

const UNANSWERED: ReadonlySet<Ending | undefined> = new Set(["silence", "away", "broken"]);

export interface TaskRules {
  readonly clock: Clock;
  readonly profile: Profile;
  /** Silence after which the phone gives up. That there is such a time is known, how long it is is not. */
  readonly silenceMs: number;
  /** A question ends the stream of its turn, but not the task. On a link it leaves everything open. */
  readonly questionsEndStreams: boolean;
  /** Characters in the text of one frame. */
  readonly textLimit: number;
  readonly report: Report;
  readonly isUploaded: (fileId: string) => boolean;
  readonly onChange: (task: SimulatedTask) => void;
}

interface TaskOrigin {
  readonly id: string;
  readonly conversationId: string;
  /** Id of the request being answered; an answer to a question of the agent comes with the same one. */
  readonly requestId: string;
  readonly said: string;
}

/** One turn of the user as the phone sees it, from the message to the end of its channel. */
export class SimulatedTask implements TaskOrigin {
  readonly id: string;
  readonly conversationId: string;
  readonly requestId: string;
  readonly said: string;
  /** Updates that had an effect. */
  shown = 0;
  /** Updates that came when nobody was looking any more. */
  ignored = 0;
  /** Updates that came again, since the agent could not know that the end had come; phones ignore them. */
  repeated = 0;
  /** Updates of this turn that said `final:true`. */
  finals = 0;
  state: State = "submitted";
  ending: Ending | undefined;
  readonly #rules: TaskRules;
  readonly #painter: ScreenRenderer;
  readonly #changes = new ChangeNotifier();
  #failure: string | undefined;
  /** Something of this turn was shown. */
  #begun = false;
  #turnIsOver = false;
  #heardAt: number;
  #stopListening = (): void => {};

  constructor(origin: TaskOrigin, rules: TaskRules) {
    this.id = origin.id;
    this.conversationId = origin.conversationId;
    this.requestId = origin.requestId;
    this.said = origin.said;
    this.#rules = rules;
    this.#painter = new ScreenRenderer(rules.profile);
    this.#heardAt = rules.clock.now();
    this.#listenFor(rules.silenceMs);
  }

  get isOpen(): boolean {
    return this.ending === undefined;
  }

  /** The user has waited for nothing. */
  get isUnanswered(): boolean {
    return UNANSWERED.has(this.ending);
  }

  get asks(): boolean {
    return this.isOpen && this.state === "input-required";
  }

  screen(): Screen {
    return this.#painter.screen(this.state, this.#failure);
  }

  /** Resolves when the condition holds, looked at after every change of this task. */
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

  /** Nothing changes on the screen. */
  countRepeated(): void {
    this.repeated++;
    this.#changes.notify();
  }

  /** An error in place of a result ends a task, too. */
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

  /** The user answers a question of the agent. */
  resume(): void {
    this.state = "submitted";
    this.finals = 0;
    this.#begun = false;
    this.#turnIsOver = false;
    this.#heardAt = this.#rules.clock.now();
    this.#listenFor(this.#rules.silenceMs);
    this.#changed();
  }

  end(ending: Ending): void {
    if (!this.isOpen) return;
    this.ending = ending;
    this.#stopListening();
    if (ending === "canceled") this.state = "canceled";
    if (this.isUnanswered || ending === "left") this.#failure = AGENT_IS_AWAY;
    // What was never begun may never have come to the agent.
    if (ending === "silence" && this.#begun) this.#report("no-final", "Nothing more came.");
    this.#changed();
  }

  reenter(): void {
    this.#painter.reenter();
    this.#changed();
  }

  #show(update: Update, error: ResponseError | undefined): void {
    this.#check(update);
    this.shown++;
    this.#begun = true;
    this.#heardAt = this.#rules.clock.now();
    this.#painter.apply(update);
    if (update.kind === "status-update") this.state = update.state;
    if (error !== undefined) {
      this.state = "failed";
      this.#failure = error.message === "" ? undefined : error.message;
    }
    if (!update.final) return;
    this.#turnIsOver = true;
    if (this.state === "input-required" && this.#rules.questionsEndStreams) return;
    // The last artifact ends a task as well as a status does.
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

  /** One timer at a time, set anew when it fires: updates come far more often than silence does. */
  #listenFor(milliseconds: number): void {
    this.#stopListening();
    const { clock, silenceMs } = this.#rules;
    if (silenceMs === Number.POSITIVE_INFINITY) return;
    this.#stopListening = clock.after(milliseconds, () => {
      if (!this.isOpen || this.asks) return;
      const rest = this.#heardAt + silenceMs - clock.now();
      if (rest > 0) this.#listenFor(rest);
      else this.end("silence");
    });
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

/** All that a frame has to be read, in characters as people count them. How long data may be is not known. */
export function textLength(update: Update): number {
  if (update.kind === "status-update") return countCharacters(update.text ?? "");
  return update.parts.reduce((sum, part) => sum + ("text" in part ? countCharacters(part.text) : 0), 0);
}

/** Not code units. */
const countCharacters = (text: string): number => [...text].length;
