/**
 * What an agent says to the platform, as events of the model; the platform is us. Frames are understood as devices do:
 * text is replaced or added to, whatever artifact it is said to be of, as long as one frame repeats what the last one
 * showed. What is different is an artifact of its own, as the documents have it.
 */
import type { Artifact } from "../../model/artifact.ts";
import type { StreamEvent } from "../../model/event.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import { isPlainText, isTextPart, type Part } from "../../model/part.ts";
import type { TaskState } from "../../model/state.ts";
import type { TaskStatus } from "../../model/task.ts";
import { unreadable } from "../shared/answers.ts";
import { derivedId } from "../shared/derived-id.ts";
import { type Members, readAnswer } from "../shared/early-reading.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { isSuccess, PLATFORM_CODES, readError } from "./errors.ts";
import { reasoningOf } from "./marks.ts";
import { readPart } from "./parts.ts";
import { sessionOf } from "./task-ids.ts";

interface Frame {
  readonly taskId: string | undefined;
  readonly final: boolean;
  readonly status?: { readonly word: unknown; readonly parts: readonly Part[] };
  readonly artifact?: { readonly append: boolean; readonly lastChunk: boolean; readonly value: Artifact };
}

/** What a screen shows in one place, and under which id the model has it. */
interface Shown {
  readonly artifactId: string;
  readonly text: string;
}

/** One stream of frames about one task. */
export class FrameHearing {
  #taskId: string | undefined;
  #ended = false;
  /** Said before the end, by agents whose last frame is an artifact. */
  #announced: TaskState | undefined;
  #text: Shown | undefined;
  #reasoning: Shown | undefined;
  readonly #artifacts = new Set<string>();

  /** Throws the agent's error as a ProtocolError, and INVALID_AGENT_RESPONSE for what cannot be read. */
  hear(envelope: unknown): Lossy<readonly StreamEvent[]> {
    if (!isRecord(envelope)) throw unreadable("a frame of the stream is not a JSON object");
    const error = isRecord(envelope.error) && !isSuccess(envelope.error) ? envelope.error : undefined;
    if (!isRecord(envelope.result)) {
      throw error === undefined ? unreadable("a frame of the stream has neither result nor error") : readError(error);
    }
    // A task that failed says so beside its last words; any other code is about the stream.
    if (error !== undefined && Number(error.code) !== PLATFORM_CODES.taskFailed) throw readError(error);
    const { losses, value } = readAnswer(envelope.result, readFrame);
    if (this.#ended) return { value: [], losses: NO_LOSSES };
    this.#taskId = value.taskId ?? this.#taskId;
    if (this.#taskId === undefined) throw unreadable("taskId is missing");
    return { value: this.#events(value, error !== undefined), losses };
  }

  #events({ artifact, final, status }: Frame, failed: boolean): StreamEvent[] {
    this.#ended = final;
    if (status !== undefined) return this.#status(status.word, status.parts, final, failed);
    const events = artifact === undefined ? [] : this.#artifact(artifact);
    if (final) events.push(this.#statusEvent(failed ? FAILED : (this.#announced ?? COMPLETED), []));
    return events;
  }

  #status(word: unknown, parts: readonly Part[], final: boolean, failed: boolean): StreamEvent[] {
    const state = failed ? FAILED : (STATES.get(word) ?? (final ? FAILED : WORKING));
    if (final || !ENDS.has(state)) return [this.#statusEvent(state, parts)];
    // Not final: something is yet to come, and nothing comes after the end.
    this.#announced = state;
    return parts.some(saysSomething) ? [this.#statusEvent(WORKING, parts)] : [];
  }

  #statusEvent(state: TaskState, parts: readonly Part[]): StreamEvent {
    const { contextId, taskId } = this.#scope();
    const said = parts.filter(saysSomething);
    const status: TaskStatus = said.length === 0 ? { state } : { state, message: this.#message(said) };
    return { statusUpdate: { taskId, contextId, status } };
  }

  #message(parts: readonly Part[]): Message {
    const { contextId, taskId } = this.#scope();
    return { messageId: derivedId(taskId, parts), role: "ROLE_AGENT", contextId, taskId, parts };
  }

  #scope(): { readonly taskId: string; readonly contextId: string } {
    const taskId = this.#taskId ?? "";
    return { taskId, contextId: sessionOf(taskId) };
  }

  #artifact({ append, lastChunk, value }: NonNullable<Frame["artifact"]>): StreamEvent[] {
    const [only] = value.parts;
    if (value.parts.length === 1 && only !== undefined) {
      const reasoning = reasoningOf(only);
      if (reasoning !== undefined && !append) return this.#reasoningEvents(value, reasoning);
      if (isPlainText(only)) return this.#textEvents(value, only.text, append, lastChunk);
    }
    if (value.parts.length === 0) return [];
    return [this.#artifactEvent(value, append && this.#artifacts.has(value.artifactId), lastChunk)];
  }

  /** Told whole each time; none at all is three dots on a screen and nothing to hear. */
  #reasoningEvents(value: Artifact, reasoning: string): StreamEvent[] {
    const known = this.#reasoning;
    const goesOn = known !== undefined && reasoning.startsWith(known.text);
    const artifactId = goesOn ? known.artifactId : value.artifactId;
    if (reasoning === "" || (goesOn && reasoning === known.text)) return [];
    this.#reasoning = { artifactId, text: reasoning };
    return [this.#artifactEvent({ ...value, artifactId }, false, false)];
  }

  #textEvents(value: Artifact, text: string, append: boolean, lastChunk: boolean): StreamEvent[] {
    const known = this.#text;
    const isNew = !this.#artifacts.has(value.artifactId);
    const goesOn = known !== undefined && isNew && lastChunk && (append || text.startsWith(known.text));
    if (goesOn) {
      const added = append ? text : text.slice(known.text.length);
      this.#text = { artifactId: known.artifactId, text: known.text + added };
      if (added === "") return [];
      return [this.#artifactEvent({ artifactId: known.artifactId, parts: [{ text: added }] }, true, lastChunk)];
    }
    // Only agents that tell a text whole each time end every one of its frames.
    this.#text = lastChunk && isNew && text !== "" ? { artifactId: value.artifactId, text } : undefined;
    return [this.#artifactEvent(value, append && !isNew, lastChunk)];
  }

  #artifactEvent(artifact: Artifact, append: boolean, lastChunk: boolean): StreamEvent {
    this.#artifacts.add(artifact.artifactId);
    return {
      artifactUpdate: {
        ...this.#scope(),
        artifact,
        ...(append ? { append } : undefined),
        ...(lastChunk ? { lastChunk } : undefined),
      },
    };
  }
}

const COMPLETED = "TASK_STATE_COMPLETED";
const FAILED = "TASK_STATE_FAILED";
const WORKING = "TASK_STATE_WORKING";

const STATES: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
  ["submitted", "TASK_STATE_SUBMITTED"],
  ["working", WORKING],
  ["input-required", "TASK_STATE_INPUT_REQUIRED"],
  ["completed", COMPLETED],
  ["canceled", "TASK_STATE_CANCELED"],
  ["cancelled", "TASK_STATE_CANCELED"],
  ["failed", FAILED],
]);
const ENDS: ReadonlySet<TaskState> = new Set<TaskState>([COMPLETED, "TASK_STATE_CANCELED", FAILED]);

function saysSomething(part: Part): boolean {
  return !isTextPart(part) || part.text !== "" || part.metadata !== undefined;
}

function readFrame(members: Members): Frame {
  const taskId = members.text("taskId");
  const final = members.flag("final") === true;
  if (members.raw("status") !== undefined) {
    return { taskId, final, status: members.requiredObject("status", readStatus) };
  }
  const append = members.flag("append") === true;
  const lastChunk = members.flag("lastChunk") === true;
  const value = members.requiredObject("artifact", (said): Artifact => {
    const parts = said.list("parts", readPart) ?? [];
    return { artifactId: said.text("artifactId") ?? derivedId("artifact", parts), parts };
  });
  return { taskId, final, artifact: { append, lastChunk, value } };
}

function readStatus(members: Members): NonNullable<Frame["status"]> {
  const parts = members.object("message", (said) => said.list("parts", readPart) ?? []) ?? [];
  return { word: members.raw("state"), parts };
}
