import { TurnAnswer } from "../../model/answer.ts";
import type { StreamEvent, TaskArtifactUpdate } from "../../model/event.ts";
import { isPlainText, isTextPart, type Part } from "../../model/message.ts";
import { safeText } from "../../model/safe-text.ts";
import { isInterrupted, isTerminal, type TaskStatus } from "../../model/task.ts";
import type { Output } from "../output.ts";
import {
  renderArtifactHeader,
  renderMessage,
  renderPart,
  renderParts,
  renderReply,
  renderTask,
  renderTaskIds,
} from "./task.ts";
import { INDENT, indent } from "./text.ts";

/**
 * Renders events as text while they arrive. The chunks of one artifact are appended to an open block as they are
 * received; any other event closes the block first.
 */
export class StreamRenderer {
  readonly #output: Output;
  readonly #verbose: boolean;
  #open: { readonly artifactId: string; readonly lines: IndentedLines } | undefined;

  constructor(output: Output, verbose: boolean) {
    this.#output = output;
    this.#verbose = verbose;
  }

  show(event: StreamEvent): void {
    if ("artifactUpdate" in event) {
      this.#artifact(event.artifactUpdate);
      return;
    }
    this.close();
    if ("task" in event) this.#output.write(renderTask(event.task, { verbose: this.#verbose, history: false }));
    else if ("message" in event) this.#output.write(renderReply(event.message, this.#verbose));
    else {
      const { contextId, status, taskId } = event.statusUpdate;
      const message = status.message === undefined ? "" : renderMessage(status.message, this.#verbose);
      this.#output.write(`${message}${renderTaskIds(taskId, contextId, status, this.#verbose)}`);
    }
  }

  /** Closes an open block. Must also be called when the stream ends without a closing event. */
  close(): void {
    if (this.#open === undefined) return;
    this.#output.write(`${this.#open.lines.end()}\n`);
    this.#open = undefined;
  }

  #artifact({ append, artifact, lastChunk }: TaskArtifactUpdate): void {
    const continues = append === true && this.#open?.artifactId === artifact.artifactId;
    if (!continues) {
      this.close();
      this.#output.write(renderArtifactHeader(artifact, this.#verbose));
    }
    for (const part of artifact.parts) this.#part(artifact.artifactId, part);
    if (lastChunk === true) this.close();
  }

  #part(artifactId: string, part: Part): void {
    if (!isPlainText(part)) {
      this.close();
      this.#output.write(renderParts([part], this.#verbose));
      return;
    }
    if (this.#open === undefined) {
      this.#output.write("Text:\n");
      this.#open = { artifactId, lines: new IndentedLines() };
    }
    this.#output.write(this.#open.lines.add(part.text));
  }
}

/** Lines that arrive in pieces. */
class IndentedLines {
  #lineIsOpen = false;
  #isEmpty = true;

  add(text: string): string {
    if (text === "") return "";
    const begin = this.#lineIsOpen ? "" : INDENT;
    const safe = safeText(text);
    this.#lineIsOpen = !safe.endsWith("\n");
    this.#isEmpty = false;
    // A line begins with its first character: none may follow the last newline.
    return begin + safe.replace(/\n(?=[\s\S])/g, `\n${INDENT}`);
  }

  /** What closes the last line; an empty text has one, too. */
  end(): string {
    return this.#lineIsOpen || this.#isEmpty ? "\n" : "";
  }
}

/** Renders events for an interactive chat: text as it arrives, without labels; states as messages on stderr. */
export class ChatRenderer {
  readonly #output: Output;
  readonly #answer = new TurnAnswer();
  /** The artifact whose text is being written, and its lines so far. */
  #artifactId: string | undefined;
  #lines: IndentedLines | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  show(event: StreamEvent): void {
    if ("message" in event) this.#parts(event.message.parts);
    else if ("statusUpdate" in event) this.#status(event.statusUpdate.status);
    else if ("task" in event) {
      const { artifacts = [], status } = event.task;
      for (const artifact of artifacts) this.#parts(artifact.parts);
      this.#answer.begin(event.task);
      this.#status(status);
    } else {
      const { append, artifact, lastChunk } = event.artifactUpdate;
      this.#answer.addArtifact(artifact);
      if (append !== true || this.#artifactId !== artifact.artifactId) this.close();
      this.#artifactId = artifact.artifactId;
      for (const part of artifact.parts) this.#part(part);
      if (lastChunk === true) this.close();
    }
  }

  close(): void {
    this.#closeLine();
    this.#artifactId = undefined;
  }

  #status(status: TaskStatus): void {
    this.close();
    const { state } = status;
    const forReading = isInterrupted(state) || isTerminal(state);
    const message = this.#answer.messageOf(status);
    if (message !== undefined && forReading) this.#parts(message.parts);
    else if (message !== undefined) {
      for (const part of message.parts) if (isTextPart(part)) this.#output.info(INDENT + part.text, "dim");
    }
    if (forReading && state !== "TASK_STATE_COMPLETED") this.#output.info(`[${state}]`, "dim");
  }

  #parts(parts: readonly Part[]): void {
    this.close();
    for (const part of parts) {
      if (isTextPart(part)) this.#output.write(indent(part.text));
      else this.#output.write(renderPart(part, false));
    }
  }

  #part(part: Part): void {
    if (!isTextPart(part)) {
      this.#closeLine();
      this.#output.write(renderPart(part, false));
      return;
    }
    if (part.text === "") return;
    this.#lines ??= new IndentedLines();
    this.#output.write(this.#lines.add(part.text));
  }

  #closeLine(): void {
    this.#output.write(this.#lines?.end() ?? "");
    this.#lines = undefined;
  }
}
