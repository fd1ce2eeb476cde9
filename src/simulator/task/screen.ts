import { type Fields, fieldsOf, listOf, textOf } from "../json.ts";
import type { FilePart, State, StatusUpdate, Update } from "./decode-response.ts";

/** How updates add up to the visible text: the only difference between phones and documentation. */
interface TextLayer {
  put(artifactId: string, append: boolean, text: string): void;
  text(): string;
}

interface Piece {
  readonly artifactId: string;
  text: string;
}

/** As documented: every artifact is a separate paragraph, which is appended to or replaced. */
class DocumentedText implements TextLayer {
  readonly #artifacts = new Map<string, string>();

  put(artifactId: string, append: boolean, text: string): void {
    const before = append ? (this.#artifacts.get(artifactId) ?? "") : "";
    this.#artifacts.set(artifactId, before + text);
  }

  text(): string {
    return [...this.#artifacts.values()].filter((text) => text !== "").join("\n\n");
  }
}

/**
 * As observed on devices in April 2026: an update without `append` replaces all text, of any artifact; one that appends
 * to a known artifact replaces that artifact's text; only one of a new artifact is added.
 */
class ObservedText implements TextLayer {
  #pieces: Piece[] = [];

  put(artifactId: string, append: boolean, text: string): void {
    if (!append) {
      this.#pieces = [{ artifactId, text }];
      return;
    }
    const known = this.#pieces.find((piece) => piece.artifactId === artifactId);
    if (known === undefined) this.#pieces.push({ artifactId, text });
    else known.text = text;
  }

  text(): string {
    return this.#pieces.map(({ text }) => text).join("");
  }
}

interface ProfileTraits {
  readonly createText: () => TextLayer;
  /** Texts of status updates stay in the chat instead of appearing temporarily in a status bar. */
  readonly keepsStatusTexts: boolean;
  /** Text is visible while the task runs. */
  readonly paintsEarly: boolean;
}

const PROFILES = {
  spec: { createText: () => new DocumentedText(), keepsStatusTexts: false, paintsEarly: true },
  "phone-2026-04": { createText: () => new ObservedText(), keepsStatusTexts: true, paintsEarly: false },
} as const satisfies Record<string, ProfileTraits>;

export type Profile = keyof typeof PROFILES;

interface Thinking {
  readonly text: string;
  /** Collapsed to a line, since the answer has begun. */
  readonly folded: boolean;
}

interface ShownFile {
  readonly name: string;
  readonly mimeType: string;
  /** Only uploaded files are known to be shown. */
  readonly shown: boolean;
}

/** What the user sees of one task. */
export interface Screen {
  readonly text: string;
  /** False while the text has been received but the phone still shows the task as working. */
  readonly painted: boolean;
  readonly thinking: Thinking | undefined;
  /** Three moving dots: the agent is thinking and has not sent any text. */
  readonly dots: boolean;
  /** Status texts that became chat entries. */
  readonly notes: readonly string[];
  /** Temporary status text. */
  readonly statusBar: string;
  /** Commands, cards, chips and references, as received. */
  readonly data: readonly Fields[];
  readonly files: readonly ShownFile[];
  readonly state: State;
  /** The phone's own message when the task did not end well. */
  readonly failure: string | undefined;
}

/** Applies updates one by one, like an app of the given profile. */
export class ScreenRenderer {
  readonly #traits: ProfileTraits;
  readonly #text: TextLayer;
  readonly #thinking: TextLayer;
  #hasThought = false;
  #hasText = false;
  #painted: boolean;
  readonly #notes: string[] = [];
  #statusBar = "";
  readonly #data: Fields[] = [];
  readonly #files: ShownFile[] = [];

  constructor(profile: Profile) {
    this.#traits = PROFILES[profile];
    this.#text = this.#traits.createText();
    this.#thinking = this.#traits.createText();
    this.#painted = this.#traits.paintsEarly;
  }

  apply(update: Update): void {
    if (update.kind === "status-update") this.#status(update);
    else for (const part of update.parts) this.#part(update.artifactId, update.append, part);
    if (update.final) {
      this.#painted = true;
      this.#statusBar = "";
    }
  }

  /** The user left the page and came back. */
  reenter(): void {
    this.#painted = true;
  }

  screen(state: State, failure: string | undefined): Screen {
    const thought = this.#thinking.text();
    return {
      text: this.#text.text(),
      painted: this.#painted || failure !== undefined,
      thinking: thought === "" ? undefined : { text: thought, folded: this.#hasText },
      dots: this.#hasThought && thought === "" && !this.#hasText,
      notes: [...this.#notes],
      statusBar: this.#statusBar,
      data: [...this.#data],
      files: [...this.#files],
      state,
      failure,
    };
  }

  #status({ state, text = "" }: StatusUpdate): void {
    // A question must be visible to be answered.
    if (state === "input-required") this.#painted = true;
    if (!this.#traits.keepsStatusTexts) this.#statusBar = text;
    else if (text !== "") this.#notes.push(text);
  }

  #part(
    artifactId: string,
    append: boolean,
    part: Extract<Update, { kind: "artifact-update" }>["parts"][number],
  ): void {
    switch (part.kind) {
      case "text":
        this.#text.put(artifactId, append, part.text);
        this.#hasText ||= part.text !== "";
        break;
      case "reasoningText":
        this.#thinking.put(artifactId, append, part.text);
        this.#hasThought = true;
        break;
      case "data":
        this.#data.push(part.data);
        this.#files.push(...filesInData(part.data));
        break;
      case "file":
        this.#files.push(shownFile(part.file));
        break;
    }
  }
}

function shownFile({ fileId, mimeType, name }: FilePart): ShownFile {
  return { name, mimeType, shown: fileId !== undefined };
}

/** The alternative reference to uploaded files. */
function filesInData({ fileInfo }: Fields): readonly ShownFile[] {
  return listOf(fileInfo).map((file) => {
    const { fileName, fileType } = fieldsOf(file);
    return { name: textOf(fileName) ?? "", mimeType: textOf(fileType) ?? "", shown: true };
  });
}

/** Ids of uploaded files that a data part refers to. */
export function fileIdsIn({ fileInfo }: Fields): readonly string[] {
  return listOf(fileInfo).flatMap((file) => textOf(fieldsOf(file).fileId) ?? []);
}
