import type { StreamEvent } from "../model/event.ts";
import { isTextPart, type Part } from "../model/part.ts";
import { isInterrupted, isTerminal } from "../model/state.ts";
import type { TaskStatus } from "../model/task.ts";
import type { Output } from "./output.ts";
import { renderPart } from "./render-parts.ts";
import { ensureNewline, safeText } from "./text-form.ts";

/** What an agent says, for a person at a terminal: words as they come, without labels; states as talk. */
export class ChatRenderer {
  readonly #output: Output;
  /** The artifact whose text is being written, and whether its line is still open. */
  #artifactId: string | undefined;
  #lineIsOpen = false;

  constructor(output: Output) {
    this.#output = output;
  }

  show(event: StreamEvent): void {
    if ("message" in event) this.#parts(event.message.parts);
    else if ("statusUpdate" in event) this.#status(event.statusUpdate.status);
    else if ("task" in event) {
      for (const artifact of event.task.artifacts ?? []) this.#parts(artifact.parts);
      this.#status(event.task.status);
    } else {
      const { append, artifact, lastChunk } = event.artifactUpdate;
      if (append !== true || this.#artifactId !== artifact.artifactId) this.close();
      this.#artifactId = artifact.artifactId;
      for (const part of artifact.parts) this.#part(part);
      if (lastChunk === true) this.close();
    }
  }

  close(): void {
    if (this.#lineIsOpen) this.#output.data("\n");
    this.#lineIsOpen = false;
    this.#artifactId = undefined;
  }

  #status({ message, state }: TaskStatus): void {
    this.close();
    const forReading = isInterrupted(state) || isTerminal(state);
    if (message !== undefined && forReading) this.#parts(message.parts);
    else if (message !== undefined) {
      for (const part of message.parts) if (isTextPart(part)) this.#output.talk(this.#output.dim(safeText(part.text)));
    }
    if (forReading && state !== "TASK_STATE_COMPLETED") this.#output.talk(this.#output.dim(`[${state}]`));
  }

  #parts(parts: readonly Part[]): void {
    this.close();
    for (const part of parts) {
      if (isTextPart(part)) this.#output.data(ensureNewline(safeText(part.text)));
      else this.#output.data(renderPart(part, false));
    }
  }

  #part(part: Part): void {
    if (!isTextPart(part)) {
      if (this.#lineIsOpen) this.#output.data("\n");
      this.#lineIsOpen = false;
      this.#output.data(renderPart(part, false));
      return;
    }
    if (part.text === "") return;
    const text = safeText(part.text);
    this.#output.data(text);
    this.#lineIsOpen = !text.endsWith("\n");
  }
}
