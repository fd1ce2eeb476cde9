// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f<>:"/\\|?*\u202a-\u202e\u2066-\u2069]+/g;
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
/** Bytes a name may have on the usual file systems, with room for a suffix of ours. */
const LONGEST = 200;

/** One plain file name of whatever an agent called it: no folders, no hidden files, nothing a terminal or system acts on. */
export function safeFileName(wanted: string): string {
  const last =
    wanted
      .split(/[/\\]/)
      .filter((segment) => segment !== "")
      .at(-1) ?? "";
  const plain = last
    .replace(UNSAFE, "_")
    .replace(/^[.\s-]+/, "")
    .replace(/[.\s]+$/, "");
  const named = plain === "" ? "artifact" : RESERVED.test(plain) ? `_${plain}` : plain;
  return shorten(named);
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= LONGEST) return name;
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 && name.length - dot <= 16 ? name.slice(dot) : "";
  let stem = "";
  for (const character of name.slice(0, name.length - extension.length)) {
    if (Buffer.byteLength(stem + character) > LONGEST - Buffer.byteLength(extension)) break;
    stem += character;
  }
  return `${stem}${extension}`;
}

/** Safe names, each given once: a second `a.txt` of the same download becomes `a-2.txt`. */
export class FileNames {
  // Compared without case, since some file systems do.
  readonly #taken = new Set<string>();

  take(wanted: string): string {
    const name = safeFileName(wanted);
    const dot = name.lastIndexOf(".");
    const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    let candidate = name;
    for (let count = 2; this.#taken.has(candidate.toLowerCase()); count++) candidate = `${stem}-${count}${extension}`;
    this.#taken.add(candidate.toLowerCase());
    return candidate;
  }
}
