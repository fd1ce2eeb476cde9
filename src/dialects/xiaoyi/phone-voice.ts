/** As phones really show it; see README.md for what they do with frames. */
import { type Loss, lossBy } from "../../model/loss.ts";
import { isDataPart, isRawPart, isTextPart, type Part } from "../../model/part.ts";
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
import { ShownText } from "./shown-text.ts";
import { countCodePoints, LONGEST_TEXT, lastOf } from "./text-pieces.ts";
import type { FrameError, PartWire, StateWord } from "./wire.ts";

/** The parts of something that is said, by where they show. */
interface Sorted extends Beside {
  readonly text: string;
}

const NO_WORDS: readonly PartWire[] = [{ kind: "text", text: "" }];

export class PhoneVoice implements Voice {
  readonly #scope: FrameScope;
  readonly #desktop: boolean;
  readonly #shown = new ShownText();
  readonly #beside = new ShownBeside();
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
    const { files, reasoning, text, things } = sort(parts, "status.message", losses);
    const said = [text, reasoning].filter((one) => one !== "").join("\n");
    if (said !== "") this.#think(this.#reasoning === "" ? said : `\n${said}`, into, losses);
    this.#show(things, files, into);
  }

  /** A question of a phone must be in the answer; on a desktop it opens with the status, unless that cannot carry it. */
  question(words: readonly Part[] | undefined, final: boolean, into: Rendered[], losses: Loss[]): void {
    const said = words && sort(words, "status.message", losses);
    const { text = "" } = said ?? {};
    const isInStatus = this.#desktop && countCodePoints(text) <= LONGEST_TEXT;
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
    for (const step of this.#shown.put(key, said.text, append)) {
      const shows = step.append ? "more-text" : "all-text";
      into.push(artifactFrame(this.#scope, [{ kind: "text", text: step.text }], { append: step.append, shows }));
    }
    this.#show(things, files, into);
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
      losses.push(lossBy(LOSSES.longReasoning, "reasoning"));
    }
    const part = { kind: "reasoningText", reasoningText: this.#reasoning } as const;
    into.push(artifactFrame(this.#scope, [part], { append: false, shows: "all-reasoning" }));
  }
}

function sort(parts: readonly Part[], path: string, losses: Loss[]): Sorted {
  let reasoning = "";
  const texts: string[] = [];
  const things: PartWire[] = [];
  const files: PartWire[] = [];
  for (const [index, part] of parts.entries()) {
    const at = `${path}.parts[${index}]`;
    const thought = reasoningOf(part);
    if (thought !== undefined) reasoning += thought;
    else if (showableIn(part) !== undefined || (isDataPart(part) && isShowable(part.data))) {
      things.push(toPartWire(part, at, losses));
    } else if (fileIdIn(part) !== undefined) files.push(toPartWire(part, at, losses));
    else texts.push(toText(part, at, losses));
  }
  return { reasoning, text: texts.filter((text) => text !== "").join("\n"), things, files };
}

/** A part as words, for whoever can be shown nothing else. */
export function toText(part: Part, path: string, losses: Loss[]): string {
  loseMetadata(part.metadata, path, losses);
  if (isTextPart(part)) {
    loseNames(part, "text/markdown", path, losses);
    return part.text;
  }
  if (isDataPart(part)) {
    losses.push(lossBy(LOSSES.dataAsText, `${path}.data`));
    return `\n\`\`\`json\n${JSON.stringify(part.data, undefined, 2)}\n\`\`\`\n`;
  }
  if (isRawPart(part) || isLocalFile(part)) {
    losses.push(lossBy(LOSSES.fileAsName, `${path}.${isRawPart(part) ? "raw" : "url"}`));
    return part.filename ?? part.mediaType ?? "";
  }
  losses.push(lossBy(LOSSES.fileAsLink, `${path}.url`));
  return `[${linkText(part.filename ?? part.url)}](${part.url})`;
}

/** Brackets would end the text of a link. */
function linkText(text: string): string {
  return text.replaceAll(/[[\]\\]/g, "\\$&");
}
