/**
 * The one text that an agent's frames come to. Most agents tell it as phones need it: whole each time it grows, or in
 * pieces that append, every frame under a new artifact id. Others do as the documents print: pieces that append under
 * the id they belong to, and then another id is another piece of text, not a new version of the first.
 */

export interface TextChange {
  /** False: instead of everything so far. */
  readonly append: boolean;
  readonly text: string;
}

interface Section {
  readonly id: string;
  text: string;
}

const BETWEEN_SECTIONS = "\n\n";
const MOST_SECTIONS = 1_000;

export class HeardText {
  #sections: Section[] = [];
  #latestId = "";
  /** Somebody appended to what has the same id: ids mean something to this agent. */
  #idsCount = false;

  get text(): string {
    const [only] = this.#sections;
    return this.#sections.length === 1 && only !== undefined
      ? only.text
      : this.#sections.map(({ text }) => text).join(BETWEEN_SECTIONS);
  }

  /** Undefined where nothing changes. Empty text says nothing: those who end an answer with it do not mean to erase it. */
  put(id: string, text: string, append: boolean): TextChange | undefined {
    if (text === "") return undefined;
    const own = this.#sections.find((section) => section.id === id);
    if (append && (own !== undefined || id === this.#latestId)) this.#idsCount = true;
    this.#latestId = id;
    return append ? this.#add(own ?? this.#sections.at(-1), id, text) : this.#replace(own, id, text);
  }

  #add(section: Section | undefined, id: string, text: string): TextChange {
    if (section === undefined) {
      this.#sections.push({ id, text });
      return { append: false, text };
    }
    section.text += text;
    return section === this.#sections.at(-1) ? { append: true, text } : { append: false, text: this.text };
  }

  #replace(own: Section | undefined, id: string, text: string): TextChange | undefined {
    const before = this.text;
    if (before !== "" && text.startsWith(before)) {
      this.#sections = [{ id, text }];
      return grown(text.slice(before.length));
    }
    if (own !== undefined) return this.#rewrite(own, text);
    if (this.#idsCount && !isVersionOf(text, before) && this.#sections.length < MOST_SECTIONS) {
      this.#sections.push({ id, text });
      return grown(BETWEEN_SECTIONS + text);
    }
    this.#sections = [{ id, text }];
    return { append: false, text };
  }

  #rewrite(section: Section, text: string): TextChange | undefined {
    const before = section.text;
    section.text = text;
    const isLast = section === this.#sections.at(-1);
    if (isLast && text.startsWith(before)) return grown(text.slice(before.length));
    return { append: false, text: this.text };
  }
}

function grown(text: string): TextChange | undefined {
  return text === "" ? undefined : { append: true, text };
}

/** Whether both begin alike: two versions of one text do, two texts do not. */
function isVersionOf(text: string, before: string): boolean {
  const enough = before.length / 2;
  let alike = 0;
  while (alike < enough && text[alike] === before[alike]) alike++;
  return alike >= enough;
}
