/** As phones really show it; see README.md for what they do with frames. */

import { type Loss, toLoss } from "../../model/loss.ts";
import { type DataPart, isDataPart, isRawPart, isTextPart, type Part } from "../../model/message.ts";
import { LOSSES } from "./losses.ts";
import { fileIdIn, isLocalFile, isShowable, reasoningOf, showableIn } from "./marks.ts";
import { loseMetadata, loseNames, toPartWire } from "./parts.ts";
import {
  type ArtifactWords,
  artifactFrame,
  type FrameScope,
  type Rendered,
  statusFrame,
  type Voice,
} from "./rendered.ts";
import { type Beside, ShownBeside } from "./shown-beside.ts";
import { ShownText, type TextStep } from "./shown-text.ts";
import { countCodePoints, LONGEST_TEXT, lastOf } from "./text-pieces.ts";
import type { FrameError, PartWire, StateWord } from "./wire.ts";

/** The parts of something that is said, by where they show. */
interface Sorted extends Beside {
  readonly text: string;
  /** As blocks of JSON, shown where there is no text. */
  readonly data: string;
  /** Where the data was. */
  readonly dataPaths: readonly string[];
}

const NO_WORDS: readonly PartWire[] = [{ kind: "text", text: "" }];

export class PhoneVoice implements Voice {
  readonly #scope: FrameScope;
  readonly #desktop: boolean;
  readonly #shown = new ShownText();
  readonly #beside = new ShownBeside();
  /** What artifacts show so far. */
  readonly #content = new Map<string, "text" | "data">();
  #reasoning = "";
  #reasoningIsCut = false;
  #questions = 0;

  constructor(scope: FrameScope, desktop: boolean) {
    this.#scope = scope;
    this.#desktop = desktop;
  }

  /** Empty reasoning shows three dots: the quickest sign that somebody is there. */
  begin(into: Rendered[]): void {
    if (this.#reasoning === "") this.#think("", into, []);
  }

  artifact({ append, artifact }: ArtifactWords, into: Rendered[], losses: Loss[]): void {
    this.#say(artifact.artifactId, sort(artifact.parts, "artifact", losses), append === true, into, losses);
  }

  progress(parts: readonly Part[], into: Rendered[], losses: Loss[]): void {
    const { files, reasoning, things, ...words } = sort(parts, "status.message", losses);
    const said = [alone(words, losses), reasoning].filter((one) => one !== "").join("\n");
    if (said !== "") this.#think(this.#reasoning === "" ? said : `\n${said}`, into, losses);
    this.#show(things, files, into);
  }

  /** A question of a phone must be in the answer; on a desktop it opens with the status, unless that cannot carry it. */
  question(words: readonly Part[] | undefined, final: boolean, into: Rendered[], losses: Loss[]): void {
    const said = words && sort(words, "status.message", losses);
    const text = (said?.text || said?.data) ?? "";
    const isInStatus = this.#desktop && countCodePoints(text) <= LONGEST_TEXT;
    if (said !== undefined && isInStatus) loseData(said, said.text === "", losses);
    if (said !== undefined && !isInStatus) this.#saySection(`question ${++this.#questions}`, said, into, losses);
    const parts = isInStatus ? [{ kind: "text" as const, text }] : NO_WORDS;
    into.push(statusFrame(this.#scope, "input-required", { final, parts }));
  }

  end(state: StateWord, words: readonly Part[] | undefined, error: FrameError, into: Rendered[], losses: Loss[]): void {
    if (words !== undefined) this.#saySection("end", sort(words, "status.message", losses), into, losses);
    into.push(statusFrame(this.#scope, state, { final: true, error }));
  }

  #saySection(key: string, words: Sorted, into: Rendered[], losses: Loss[]): void {
    // No artifact has a key that begins like this.
    this.#say(`\0${key}`, words, false, into, losses);
  }

  #say(key: string, said: Sorted, append: boolean, into: Rendered[], losses: Loss[]): void {
    const { files, reasoning, things } = this.#beside.put(key, said, append);
    if (reasoning !== "") this.#think(reasoning, into, losses);
    for (const step of this.#steps(key, said, append, losses)) {
      const shows = step.append ? "more-text" : "all-text";
      into.push(artifactFrame(this.#scope, [{ kind: "text", text: step.text }], { append: step.append, shows }));
    }
    this.#show(things, files, into);
  }

  /** Data is shown only while it stands alone: text that comes to the same artifact takes its place. */
  #steps(key: string, sorted: Sorted, append: boolean, losses: Loss[]): TextStep[] {
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

  #show(things: readonly PartWire[], files: readonly PartWire[], into: Rendered[]): void {
    for (const thing of things) into.push({ ...artifactFrame(this.#scope, [thing], { append: true }), once: true });
    const { taskId: artifactId } = this.#scope;
    for (const file of files) {
      into.push({ ...artifactFrame(this.#scope, [file], { append: true, lastChunk: false, artifactId }), once: true });
    }
  }

  /** Told whole each time, as all there is: that reasoning can be added to is not known of any phone. */
  #think(added: string, into: Rendered[], losses: Loss[]): void {
    const all = this.#reasoning + added;
    this.#reasoning = lastOf(all);
    if (this.#reasoning.length < all.length && !this.#reasoningIsCut) {
      this.#reasoningIsCut = true;
      losses.push(toLoss(LOSSES.longReasoning, "reasoning"));
    }
    const part = { kind: "reasoningText", reasoningText: this.#reasoning } as const;
    into.push(artifactFrame(this.#scope, [part], { append: false, shows: "all-reasoning" }));
  }
}

function sort(parts: readonly Part[], path: string, losses: Loss[]): Sorted {
  let reasoning = "";
  const texts: string[] = [];
  const data: string[] = [];
  const dataPaths: string[] = [];
  const things: PartWire[] = [];
  const files: PartWire[] = [];
  for (const [index, part] of parts.entries()) {
    const at = `${path}.parts[${index}]`;
    const thought = reasoningOf(part);
    if (thought !== undefined) reasoning += thought;
    else if (showableIn(part) !== undefined || (isDataPart(part) && isShowable(part.data))) {
      things.push(toPartWire(part, at, losses));
    } else if (fileIdIn(part) !== undefined) files.push(toPartWire(part, at, losses));
    else if (isDataPart(part)) {
      loseMetadata(part.metadata, at, losses);
      data.push(toJsonBlock(part));
      dataPaths.push(`${at}.data`);
    } else texts.push(toText(part, at, losses));
  }
  return { reasoning, text: joinLines(texts), data: joinLines(data), dataPaths, things, files };
}

function joinLines(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}

/** The text of what is shown once and as a whole. */
function alone(sorted: Pick<Sorted, "text" | "data" | "dataPaths">, losses: Loss[]): string {
  loseData(sorted, sorted.text === "", losses);
  return sorted.text || sorted.data;
}

function loseData({ dataPaths }: Pick<Sorted, "dataPaths">, isShown: boolean, losses: Loss[]): void {
  const rule = isShown ? LOSSES.dataAsText : LOSSES.dataBesideText;
  losses.push(...dataPaths.map((path) => toLoss(rule, path)));
}

function toJsonBlock({ data }: DataPart): string {
  return `\n\`\`\`json\n${JSON.stringify(data, undefined, 2)}\n\`\`\`\n`;
}

/** What people read of parts that are shown once, without their reasoning. */
export function shownTextOf(parts: readonly Part[]): string {
  const read = parts.filter((part) => reasoningOf(part) === undefined);
  const text = joinLines(read.flatMap((part) => (isDataPart(part) ? [] : [toText(part, "", [])])));
  return text === "" ? joinLines(read.filter(isDataPart).map(toJsonBlock)) : text;
}

/** A part as words, for a reader that can be shown nothing else. */
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

/** Brackets would end the text of a link. */
function linkText(text: string): string {
  return text.replaceAll(/[[\]\\]/g, "\\$&");
}
