/** How pieces of text become what is read: the one thing in which phones and documents disagree. */
export interface TextLayer {
  put(artifactId: string, append: boolean, text: string): void;
  text(): string;
}

interface Piece {
  readonly artifactId: string;
  text: string;
}

/** By the book: every artifact is a paragraph of its own, which grows or is replaced. */
export class DocumentedText implements TextLayer {
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
 * As seen on devices in April 2026: a piece that does not append replaces all text there is, of whichever artifact; one
 * that appends to an artifact it knows replaces that artifact's piece; only one of a new artifact is added.
 */
export class ObservedText implements TextLayer {
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
