import { safeFileName } from "../server/safe-file-name.ts";

/** Safe names, each given once: a second `a.txt` of the same download becomes `a-2.txt`. */
export class FileNames {
  // Compared without case, since some file systems do.
  readonly #taken = new Set<string>();

  take(wanted: string): string {
    const name = safeFileName(wanted, "artifact");
    const dot = name.lastIndexOf(".");
    const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    let candidate = name;
    for (let count = 2; this.#taken.has(candidate.toLowerCase()); count++) candidate = `${stem}-${count}${extension}`;
    this.#taken.add(candidate.toLowerCase());
    return candidate;
  }
}
