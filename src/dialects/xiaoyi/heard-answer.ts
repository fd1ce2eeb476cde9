/** The frames of an agent's answer as events of a task: one text, whichever habit the agent has, and one end. */
import type { ProtocolError } from "../../model/errors.ts";
import type { TaskEvent } from "../../model/event.ts";
import type { Part } from "../../model/part.ts";
import { isInterrupted, isTerminal, type TaskState } from "../../model/state.ts";
import type { CodecTools } from "../contract.ts";
import { derivedId } from "../shared/derived-id.ts";
import { type HeardArtifact, type HeardFrame, type HeardStatus, progressPart } from "./heard-frame.ts";
import { HeardText } from "./heard-text.ts";

/** The artifact that is the answer's text. */
export const ANSWER = "answer";

export interface AnswerScope {
  readonly taskId: string;
  readonly contextId: string;
  readonly ids: Pick<CodecTools["ids"], "message">;
}

/** How much reasoning is held back: agents tell it word by word, and each telling becomes a message of the task. */
const HELD_REASONING = 200;

/** What the last frame says where no status said it. */
const COMPLETED: Pick<HeardStatus, "state" | "parts"> = { state: "TASK_STATE_COMPLETED", parts: [] };
/** Of how many things it is known that they were given already. */
const MOST_THINGS = 1_000;

export class HeardAnswer {
  readonly #scope: AnswerScope;
  readonly #text = new HeardText();
  readonly #reasoning = new HeardText();
  readonly #things = new Set<string>();
  #held = "";
  #isWorking = false;
  #progress = "";
  /** A last state, of which the last frame has still to come. */
  #outcome: HeardStatus | undefined;
  #ended = false;

  constructor(scope: AnswerScope) {
    this.#scope = scope;
  }

  /** Nothing belongs to the answer any more: the task has ended, or waits for somebody. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The agent told how the task ended, but not that this was all: some say more after it, others forget to say. */
  get settling(): boolean {
    return this.#outcome !== undefined && !this.#ended;
  }

  /** Characters of the text so far. */
  get length(): number {
    return this.#text.text.length;
  }

  /** `error` is what the frame says went wrong. */
  hear(frame: HeardFrame, error: ProtocolError | undefined): TaskEvent[] {
    if (this.#ended) return [];
    return frame.kind === "artifact" ? this.#artifact(frame, error) : this.#status(frame, error);
  }

  /** All that is to come has come. */
  settle(): TaskEvent[] {
    return this.settling ? this.#end(undefined) : [];
  }

  #artifact(frame: HeardArtifact, error: ProtocolError | undefined): TaskEvent[] {
    const events = this.#think(frame);
    if (frame.text !== "" || frame.things.length > 0) this.#flush(events);
    const change = this.#text.put(frame.artifactId, frame.text, frame.append);
    if (change !== undefined) {
      events.push(this.#toArtifact(ANSWER, [{ text: change.text }], change.append, frame.final));
    }
    const things = frame.things.filter((thing) => this.#isNew(thing));
    if (things.length > 0) events.push(this.#toArtifact(thingsId(frame.artifactId), things, frame.append, frame.final));
    if (frame.final) events.push(...this.#end(error));
    return events;
  }

  #status(frame: HeardStatus, error: ProtocolError | undefined): TaskEvent[] {
    const { final, parts, state } = frame;
    if (state !== undefined && isInterrupted(state)) return this.#ask(state, parts);
    if (state !== undefined && isTerminal(state)) this.#outcome = frame;
    else if (final) this.#outcome = { ...frame, state: state === undefined ? state : "TASK_STATE_COMPLETED" };
    if (final) return this.#end(error);
    return state === "TASK_STATE_WORKING" ? this.#work(parts) : [];
  }

  /** Most of these only say that the agent is still there. */
  #work(parts: readonly Part[]): TaskEvent[] {
    const said = JSON.stringify(parts);
    if (this.#isWorking && (parts.length === 0 || said === this.#progress)) return [];
    this.#progress = said;
    return [this.#toStatus("TASK_STATE_WORKING", parts)];
  }

  /** Where the status has no question, the text is the question. */
  #ask(state: TaskState, parts: readonly Part[]): TaskEvent[] {
    const events: TaskEvent[] = [];
    this.#flush(events);
    this.#ended = true;
    const { text } = this.#text;
    events.push(this.#toStatus(state, parts.length > 0 || text === "" ? parts : [{ text }]));
    return events;
  }

  #end(error: ProtocolError | undefined): TaskEvent[] {
    const events: TaskEvent[] = [];
    this.#flush(events);
    this.#ended = true;
    const { parts, state = "TASK_STATE_FAILED" } = this.#outcome ?? COMPLETED;
    const failed = error !== undefined && state === "TASK_STATE_COMPLETED";
    const words = parts.length > 0 || error === undefined ? parts : [{ text: error.message }];
    events.push(this.#toStatus(failed ? "TASK_STATE_FAILED" : state, words));
    return events;
  }

  /** Told as progress: at once where it is something new, in lines or longer pieces where it grows. */
  #think({ append, artifactId, reasoning }: HeardArtifact): TaskEvent[] {
    const events: TaskEvent[] = [];
    const change = this.#reasoning.put(artifactId, reasoning, append);
    if (change === undefined) return events;
    if (!change.append) this.#held = "";
    this.#held += change.text;
    if (!change.append || this.#held.length >= HELD_REASONING || this.#held.includes("\n")) this.#flush(events);
    return events;
  }

  #flush(events: TaskEvent[]): void {
    if (this.#held.trim() !== "") events.push(this.#toStatus("TASK_STATE_WORKING", [progressPart(this.#held)]));
    this.#held = "";
  }

  /** Agents whose connection broke say again what may not have arrived, and cards have a new id each time. */
  #isNew(thing: Part): boolean {
    const id = derivedId("thing", thing);
    if (this.#things.has(id)) return false;
    if (this.#things.size < MOST_THINGS) this.#things.add(id);
    return true;
  }

  #toStatus(state: TaskState, parts: readonly Part[]): TaskEvent {
    const { contextId, ids, taskId } = this.#scope;
    this.#isWorking = true;
    if (parts.length === 0) return { statusUpdate: { taskId, contextId, status: { state } } };
    const message = { messageId: ids.message(), role: "ROLE_AGENT", taskId, contextId, parts } as const;
    return { statusUpdate: { taskId, contextId, status: { state, message } } };
  }

  #toArtifact(artifactId: string, parts: readonly Part[], append: boolean, lastChunk: boolean): TaskEvent {
    const { contextId, taskId } = this.#scope;
    return {
      artifactUpdate: {
        taskId,
        contextId,
        artifact: { artifactId, parts },
        ...(append ? { append } : undefined),
        ...(lastChunk ? { lastChunk } : undefined),
      },
    };
  }
}

/** Never that of the text, which replaces what has its id. */
function thingsId(artifactId: string): string {
  return artifactId === "" || artifactId === ANSWER ? "things" : artifactId;
}
