/** Renders frames for phones; README.md describes how phones show them. */

import { type Loss, toLoss } from "../../../model/loss.ts";
import { type DataPart, isDataPart, isRawPart, isTextPart, type Part } from "../../../model/message.ts";
import { LOSSES } from "../abilities.ts";
import {
  type ArtifactChunk,
  artifactFrame,
  countCodePoints,
  type FrameError,
  type FrameScope,
  lastCodePoints,
  MAX_FRAME_TEXT,
  type ModeRenderer,
  type PartWire,
  type RenderedFrame,
  type StateName,
  statusFrame,
} from "../frames.ts";
import { fileIdOf, isLocalFile, isShowable, reasoningOf, showableDataOf } from "../metadata.ts";
import { encodePart, loseMetadata, loseNames } from "../parts.ts";
import { type Attachments, ShownAttachments, ShownText, type TextStep } from "./phone-screen.ts";

/** Parts, grouped by where they are shown. */
interface SortedParts extends Attachments {
  readonly text: string;
  /** As blocks of JSON, shown only if there is no text. */
  readonly data: string;
  /** The paths of the data parts. */
  readonly dataPaths: readonly string[];
}

const EMPTY_MESSAGE: readonly PartWire[] = [{ kind: "text", text: "" }];

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
  begin(into: RenderedFrame[]): void {
    if (this.#reasoning === "") this.#putReasoning("", into, []);
  }

  artifact({ append, artifact }: ArtifactChunk, into: RenderedFrame[], losses: Loss[]): void {
    this.#putArtifact(
      artifact.artifactId,
      sortParts(artifact.parts, "artifact", losses),
      append === true,
      into,
      losses,
    );
  }

  progress(parts: readonly Part[], into: RenderedFrame[], losses: Loss[]): void {
    const { files, reasoning, items, ...message } = sortParts(parts, "status.message", losses);
    const sorted = [textOrData(message, losses), reasoning].filter((one) => one !== "").join("\n");
    if (sorted !== "") this.#putReasoning(this.#reasoning === "" ? sorted : `\n${sorted}`, into, losses);
    this.#putAttachments(items, files, into);
  }

  /**
   * On phones a question must be in the answer's text; on a desktop it is in the status, unless the status cannot carry
   * it.
   */
  question(message: readonly Part[] | undefined, final: boolean, into: RenderedFrame[], losses: Loss[]): void {
    const sorted = message && sortParts(message, "status.message", losses);
    const text = (sorted?.text || sorted?.data) ?? "";
    const isInStatus = this.#desktop && countCodePoints(text) <= MAX_FRAME_TEXT;
    if (sorted !== undefined && isInStatus) loseData(sorted, sorted.text === "", losses);
    if (sorted !== undefined && !isInStatus) this.#putSection(`question ${++this.#questions}`, sorted, into, losses);
    const parts = isInStatus ? [{ kind: "text" as const, text }] : EMPTY_MESSAGE;
    into.push(statusFrame(this.#scope, "input-required", { final, parts }));
  }

  end(
    state: StateName,
    message: readonly Part[] | undefined,
    error: FrameError,
    into: RenderedFrame[],
    losses: Loss[],
  ): void {
    if (message !== undefined) this.#putSection("end", sortParts(message, "status.message", losses), into, losses);
    into.push(statusFrame(this.#scope, state, { final: true, error }));
  }

  #putSection(key: string, message: SortedParts, into: RenderedFrame[], losses: Loss[]): void {
    // No artifact id starts with this character.
    this.#putArtifact(`\0${key}`, message, false, into, losses);
  }

  #putArtifact(key: string, sorted: SortedParts, append: boolean, into: RenderedFrame[], losses: Loss[]): void {
    const { files, reasoning, items } = this.#attachments.put(key, sorted, append);
    if (reasoning !== "") this.#putReasoning(reasoning, into, losses);
    for (const step of this.#steps(key, sorted, append, losses)) {
      const shows = step.append ? "more-text" : "all-text";
      into.push(artifactFrame(this.#scope, [{ kind: "text", text: step.text }], { append: step.append, shows }));
    }
    this.#putAttachments(items, files, into);
  }

  /** Data is shown only on its own: text in the same artifact replaces it. */
  #steps(key: string, sorted: SortedParts, append: boolean, losses: Loss[]): TextStep[] {
    const content = append ? this.#content.get(key) : undefined;
    const isData = sorted.text === "" && content !== "text";
    loseData(sorted, isData, losses);
    if (!append) this.#content.delete(key);
    if (!isData) this.#content.set(key, "text");
    else if (sorted.data !== "") this.#content.set(key, "data");
    return isData
      ? this.#shown.put(key, sorted.data, append)
      : this.#shown.put(key, sorted.text, append && content !== "data");
  }

  #putAttachments(items: readonly PartWire[], files: readonly PartWire[], into: RenderedFrame[]): void {
    for (const thing of items) into.push({ ...artifactFrame(this.#scope, [thing], { append: true }), once: true });
    const { taskId: artifactId } = this.#scope;
    for (const file of files) {
      into.push({ ...artifactFrame(this.#scope, [file], { append: true, lastChunk: false, artifactId }), once: true });
    }
  }

  /** Sent in full each time: no phone is known to support appending to reasoning. */
  #putReasoning(added: string, into: RenderedFrame[], losses: Loss[]): void {
    const all = this.#reasoning + added;
    this.#reasoning = lastCodePoints(all);
    if (this.#reasoning.length < all.length && !this.#reasoningIsCut) {
      this.#reasoningIsCut = true;
      losses.push(toLoss(LOSSES.longReasoning, "reasoning"));
    }
    const part = { kind: "reasoningText", reasoningText: this.#reasoning } as const;
    into.push(artifactFrame(this.#scope, [part], { append: false, shows: "all-reasoning" }));
  }
}

function sortParts(parts: readonly Part[], path: string, losses: Loss[]): SortedParts {
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
  return { reasoning, text: joinLines(texts), data: joinLines(data), dataPaths, items, files };
}

function joinLines(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}

/** The text of content that is shown once and in full. */
function textOrData(sorted: Pick<SortedParts, "text" | "data" | "dataPaths">, losses: Loss[]): string {
  loseData(sorted, sorted.text === "", losses);
  return sorted.text || sorted.data;
}

function loseData({ dataPaths }: Pick<SortedParts, "dataPaths">, isShown: boolean, losses: Loss[]): void {
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
  return `[${linkText(part.filename ?? part.url)}](${part.url})`;
}

/** Brackets would end the link text. */
function linkText(text: string): string {
  return text.replaceAll(/[[\]\\]/g, "\\$&");
}
