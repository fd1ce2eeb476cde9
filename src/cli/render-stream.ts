import type { StreamEvent, TaskArtifactUpdate } from "../model/event.ts";
import { isPlainText, type Part } from "../model/part.ts";
import type { Output } from "./output.ts";
import { renderParts } from "./render-parts.ts";
import { renderArtifactHead, renderIdentity, renderMessage, renderReply, renderTask } from "./render-task.ts";
import { safeText } from "./text-form.ts";

/**
 * Events as text while they come. Text of one artifact that arrives in pieces is written as one open block, piece by
 * piece, so that words appear as the agent finds them; whatever comes next closes the block first.
 */
export class StreamRenderer {
  readonly #output: Output;
  readonly #verbose: boolean;
  #open: { readonly artifactId: string; endsLine: boolean } | undefined;

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
    if ("task" in event) this.#output.data(renderTask(event.task, { verbose: this.#verbose, history: false }));
    else if ("message" in event) this.#output.data(renderReply(event.message, this.#verbose));
    else {
      const { contextId, status, taskId } = event.statusUpdate;
      const said = status.message === undefined ? "" : renderMessage(status.message, this.#verbose);
      this.#output.data(`${said}${renderIdentity(taskId, contextId, status, this.#verbose)}`);
    }
  }

  /** Ends an open block. Also to be called when the stream ends without a closing event. */
  close(): void {
    if (this.#open === undefined) return;
    this.#output.data(this.#open.endsLine ? "\n" : "\n\n");
    this.#open = undefined;
  }

  #artifact({ append, artifact, lastChunk }: TaskArtifactUpdate): void {
    const continues = append === true && this.#open?.artifactId === artifact.artifactId;
    if (!continues) {
      this.close();
      this.#output.data(renderArtifactHead(artifact, this.#verbose));
    }
    for (const part of artifact.parts) this.#part(artifact.artifactId, part);
    if (lastChunk === true) this.close();
  }

  #part(artifactId: string, part: Part): void {
    if (!isPlainText(part)) {
      this.close();
      this.#output.data(renderParts([part], this.#verbose));
      return;
    }
    if (this.#open === undefined) {
      this.#output.data("Text:\n");
      this.#open = { artifactId, endsLine: false };
    }
    if (part.text === "") return;
    const text = safeText(part.text);
    this.#output.data(text);
    this.#open.endsLine = text.endsWith("\n");
  }
}
