import { type Fields, fieldsOf, listOf } from "../../../../core/model/json.ts";
import { textOf } from "../json.ts";
import type { ArtifactUpdate, State, StatusUpdate, Update } from "./decode-response.ts";

interface Piece {
  readonly artifactId: string;
  readonly text: string;
}

interface ProfileTraits {
  /** How an update changes the visible text, which consists of one piece per artifact. */
  readonly put: (pieces: readonly Piece[], update: Piece, append: boolean) => readonly Piece[];
  readonly separator: string;
  /** Texts of status updates stay in the chat instead of appearing temporarily in a status bar. */
  readonly keepsStatusTexts: boolean;
  /** Text is visible while the task runs. */
  readonly paintsEarly: boolean;
}

function replacePiece(pieces: readonly Piece[], update: Piece): readonly Piece[] {
  const isSame = ({ artifactId }: Piece) => artifactId === update.artifactId;
  return pieces.some(isSame) ? pieces.map((piece) => (isSame(piece) ? update : piece)) : [...pieces, update];
}

const PROFILES = {
  /** As documented: every artifact is a separate paragraph, which is appended to or replaced. */
  spec: {
    put: (pieces, { artifactId, text }, append) => {
      const before = append ? (pieces.find((piece) => piece.artifactId === artifactId)?.text ?? "") : "";
      return replacePiece(pieces, { artifactId, text: before + text });
    },
    separator: "\n\n",
    keepsStatusTexts: false,
    paintsEarly: true,
  },
  /**
   * As observed on devices in April 2026: an update without `append` replaces all text, of any artifact; one that appends
   * to a known artifact replaces that artifact's text; only one of a new artifact is added.
   */
  "phone-2026-04": {
    put: (pieces, update, append) => (append ? replacePiece(pieces, update) : [update]),
    separator: "",
    keepsStatusTexts: true,
    paintsEarly: false,
  },
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

export interface Screen {
  readonly text: string;
  /** False while the text has been received but the phone still shows the task as working. */
  readonly painted: boolean;
  readonly thinking: Thinking | undefined;
  /** Three moving dots: the agent is thinking and has not sent any text. */
  readonly dots: boolean;
  /** Status texts that became chat entries. */
  readonly notes: readonly string[];
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
  #text: readonly Piece[] = [];
  #thinking: readonly Piece[] = [];
  #hasThought = false;
  #hasText = false;
  #painted: boolean;
  readonly #notes: string[] = [];
  #statusBar = "";
  readonly #data: Fields[] = [];
  readonly #files: ShownFile[] = [];

  constructor(profile: Profile) {
    this.#traits = PROFILES[profile];
    this.#painted = this.#traits.paintsEarly;
  }

  apply(update: Update): void {
    if (update.kind === "status-update") this.#status(update);
    else for (const part of update.parts) this.#part(update, part);
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
    const thought = this.#join(this.#thinking);
    return {
      text: this.#join(this.#text),
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

  #join(pieces: readonly Piece[]): string {
    return pieces
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join(this.#traits.separator);
  }

  #part({ append, artifactId }: ArtifactUpdate, part: ArtifactUpdate["parts"][number]): void {
    switch (part.kind) {
      case "text":
        this.#text = this.#traits.put(this.#text, { artifactId, text: part.text }, append);
        this.#hasText ||= part.text !== "";
        break;
      case "reasoningText":
        this.#thinking = this.#traits.put(this.#thinking, { artifactId, text: part.text }, append);
        this.#hasThought = true;
        break;
      case "data":
        this.#data.push(part.data);
        this.#files.push(...filesInData(part.data));
        break;
      case "file":
        this.#files.push({ name: part.file.name, mimeType: part.file.mimeType, shown: part.file.fileId !== undefined });
        break;
    }
  }
}

/** The alternative reference to uploaded files. */
function filesInData({ fileInfo }: Fields): readonly ShownFile[] {
  return listOf(fileInfo).map((file) => {
    const { fileName, fileType } = fieldsOf(file);
    return { name: textOf(fileName) ?? "", mimeType: textOf(fileType) ?? "", shown: true };
  });
}

export function fileIdsIn({ fileInfo }: Fields): readonly string[] {
  return listOf(fileInfo).flatMap((file) => textOf(fieldsOf(file).fileId) ?? []);
}
