/** Renders frames for phones; the README of the feature describes how phones show them. */

import { type Loss, toLoss } from "../../../../core/model/loss.ts";
import { type DataPart, isDataPart, isRawPart, isTextPart, type Part } from "../../../../core/model/message.ts";
import {
  type ArtifactChunk,
  artifactFrame,
  countCodePoints,
  type FrameError,
  type FrameScope,
  lastCodePoints,
  MAX_FRAME_TEXT,
  type MessageParts,
  type ModeRenderer,
  type PartWire,
  type RenderOutput,
  type StateName,
  statusFrame,
} from "../frames.ts";
import { LOSSES } from "../losses.ts";
import { fileIdOf, isLocalFile, isShowable, reasoningOf, showableDataOf } from "../metadata.ts";
import { encodePart, loseMetadata, loseNames } from "../parts.ts";
import { type Attachments, ShownAttachments, ShownText, type TextStep } from "./phone-screen.ts";

/** Parts, grouped by where they are shown. */
interface SortedParts extends Attachments {
  readonly text: string;
  /** As blocks of JSON, shown only if there is no text. */
  readonly data: string;
  readonly dataPaths: readonly string[];
}

export class PhoneRenderer implements ModeRenderer {
  readonly #scope: FrameScope;
  readonly #desktop: boolean;
  readonly #shown = new ShownText();
  readonly #attachments = new ShownAttachments();
  /** What each artifact shows so far. */
  readonly #content = new Map<string, "text" | "data">();
  #reasoning = "";
  #reasoningIsCut = false;
  #questions = 0;

  constructor(scope: FrameScope, desktop: boolean) {
    this.#scope = scope;
    this.#desktop = desktop;
  }

  /** Empty reasoning shows three dots: the fastest sign of life. */
  begin(out: RenderOutput): void {
    this.#putReasoning("", out);
  }

  artifact({ append, artifact }: ArtifactChunk, out: RenderOutput): void {
    if (this.#shown.isAfterOther(artifact.artifactId)) out.losses.push(toLoss(LOSSES.artifactsAsOne, "artifact"));
    this.#put(artifact.artifactId, sortParts(artifact.parts, "artifact", out), append === true, out);
  }

  progress(message: MessageParts, out: RenderOutput): void {
    const { items, reasoning, ...sorted } = sortParts(message, "status.message", out);
    loseData(sorted, sorted.text === "", out);
    const added = [sorted.text || sorted.data, reasoning].filter((one) => one !== "").join("\n");
    if (added !== "") this.#putReasoning(this.#reasoning === "" ? added : `\n${added}`, out);
    this.#putItems(items, out);
  }

  /**
   * On phones a question must be in the answer's text; on a desktop it is in the status, unless the status cannot carry
   * it. One that repeats the text before it is not shown twice: a bridge gets both from an agent that asks in its text.
   */
  question(message: MessageParts | undefined, final: boolean, out: RenderOutput): void {
    const sorted = message && sortParts(message, "status.message", out);
    const text = (sorted?.text || sorted?.data) ?? "";
    const isInStatus = this.#desktop && countCodePoints(text) <= MAX_FRAME_TEXT;
    if (sorted !== undefined && isInStatus) loseData(sorted, sorted.text === "", out);
    if (sorted !== undefined && !isInStatus) {
      const isShown = text !== "" && text === this.#shown.latest;
      this.#putMessage(`\0question ${++this.#questions}`, isShown ? { ...sorted, text: "", data: "" } : sorted, out);
    }
    const parts = [{ kind: "text", text: isInStatus ? text : "" } as const];
    out.frames.push(statusFrame(this.#scope, "input-required", { final, parts }));
  }

  end(state: StateName, message: MessageParts | undefined, error: FrameError, out: RenderOutput): void {
    if (message !== undefined) this.#putMessage("\0end", sortParts(message, "status.message", out), out);
    out.frames.push(statusFrame(this.#scope, state, { final: true, error }));
  }

  #putMessage(key: string, sorted: SortedParts, out: RenderOutput): void {
    if (sorted.text !== "") out.losses.push(toLoss(LOSSES.messageAsText, "status.message"));
    this.#put(key, sorted, false, out);
  }

  /** `key` is an artifact id, or begins with a null character, which no artifact id does. */
  #put(key: string, sorted: SortedParts, append: boolean, out: RenderOutput): void {
    const { items, reasoning } = this.#attachments.put(key, sorted, append);
    if (reasoning !== "") this.#putReasoning(reasoning, out);
    for (const step of this.#steps(key, sorted, append, out)) {
      const shows = step.append ? "more-text" : "all-text";
      out.frames.push(artifactFrame(this.#scope, [{ kind: "text", text: step.text }], { append: step.append, shows }));
    }
    this.#putItems(items, out);
  }

  /** Data is shown only on its own: text in the same artifact replaces it. */
  #steps(key: string, sorted: SortedParts, append: boolean, out: RenderOutput): TextStep[] {
    const content = append ? this.#content.get(key) : undefined;
    const isData = sorted.text === "" && content !== "text";
    loseData(sorted, isData, out);
    if (!append) this.#content.delete(key);
    if (!isData) this.#content.set(key, "text");
    else if (sorted.data !== "") this.#content.set(key, "data");
    return isData
      ? this.#shown.put(key, sorted.data, append)
      : this.#shown.put(key, sorted.text, append && content !== "data");
  }

  #putItems(items: readonly PartWire[], { frames }: RenderOutput): void {
    const { taskId: artifactId } = this.#scope;
    for (const item of items) {
      const options = item.kind === "file" ? { append: true, lastChunk: false, artifactId } : { append: true };
      frames.push({ ...artifactFrame(this.#scope, [item], options), once: true });
    }
  }

  /** Sent in full each time: no phone is known to support appending to reasoning. */
  #putReasoning(added: string, { frames, losses }: RenderOutput): void {
    const all = this.#reasoning + added;
    this.#reasoning = lastCodePoints(all);
    if (this.#reasoning.length < all.length && !this.#reasoningIsCut) {
      this.#reasoningIsCut = true;
      losses.push(toLoss(LOSSES.longReasoning, "reasoning"));
    }
    const part = { kind: "reasoningText", reasoningText: this.#reasoning } as const;
    frames.push(artifactFrame(this.#scope, [part], { append: false, shows: "all-reasoning" }));
  }
}

function sortParts(parts: MessageParts, path: string, { losses }: RenderOutput): SortedParts {
  let reasoning = "";
  const texts: string[] = [];
  const data: string[] = [];
  const dataPaths: string[] = [];
  const items: PartWire[] = [];
  const files: PartWire[] = [];
  for (const [index, part] of parts.entries()) {
    const at = `${path}.parts[${index}]`;
    const thought = reasoningOf(part);
    if (thought !== undefined) reasoning += thought;
    else if (showableDataOf(part) !== undefined || (isDataPart(part) && isShowable(part.data))) {
      items.push(encodePart(part, at, losses));
    } else if (fileIdOf(part) !== undefined) files.push(encodePart(part, at, losses));
    else if (isDataPart(part)) {
      loseMetadata(part.metadata, at, losses);
      data.push(toJsonBlock(part));
      dataPaths.push(`${at}.data`);
    } else texts.push(toText(part, at, losses));
  }
  return { reasoning, text: joinLines(texts), data: joinLines(data), dataPaths, items: [...items, ...files] };
}

function joinLines(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}

function loseData({ dataPaths }: Pick<SortedParts, "dataPaths">, isShown: boolean, { losses }: RenderOutput): void {
  const rule = isShown ? LOSSES.dataAsText : LOSSES.dataBesideText;
  losses.push(...dataPaths.map((path) => toLoss(rule, path)));
}

function toJsonBlock({ data }: DataPart): string {
  return `\n\`\`\`json\n${JSON.stringify(data, undefined, 2)}\n\`\`\`\n`;
}

/** The visible text of parts that are shown once, without reasoning. */
export function visibleTextOf(parts: readonly Part[]): string {
  const read = parts.filter((part) => reasoningOf(part) === undefined);
  const text = joinLines(read.flatMap((part) => (isDataPart(part) ? [] : [toText(part, "", [])])));
  return text === "" ? joinLines(read.filter(isDataPart).map(toJsonBlock)) : text;
}

/** A part as text, for a reader that can show nothing else. */
function toText(part: Exclude<Part, DataPart>, path: string, losses: Loss[]): string {
  loseMetadata(part.metadata, path, losses);
  if (isTextPart(part)) {
    loseNames(part, "text/markdown", path, losses);
    return part.text;
  }
  if (isRawPart(part) || isLocalFile(part)) {
    losses.push(toLoss(LOSSES.fileAsName, `${path}.${isRawPart(part) ? "raw" : "url"}`));
    return part.filename ?? part.mediaType ?? "";
  }
  losses.push(toLoss(LOSSES.fileAsLink, `${path}.url`));
  // Brackets would end the link text.
  const name = (part.filename ?? part.url).replaceAll(/[[\]\\]/g, "\\$&");
  return `[${name}](${part.url})`;
}
