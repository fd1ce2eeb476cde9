/** Files of users on this machine, for agents that work on another one. */

import { hash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { isUrlPart, type Part, type UrlPart } from "../model/message.ts";

/** Larger files do not fit into a message, of which base64 takes a third more. */
const MAX_INLINE_BYTES = 12 * 1024 * 1024;

/** The server stores each file in a folder that is named after the digest of its content. */
interface StoredFile {
  readonly path: string;
  readonly digest: string;
}

export function hasStoredFile(parts: readonly Part[]): boolean {
  return parts.some((part) => findStoredFile(part) !== undefined);
}

/**
 * The parts with the bytes of stored files in place of their paths. A caller may write any `file:` URL into a message, so
 * only that is read whose URL has the digest of its content: nothing that its author did not have.
 */
export function inlineStoredFiles(parts: readonly Part[]): Promise<readonly Part[]> {
  return Promise.all(
    parts.map((part) => {
      const stored = findStoredFile(part);
      return stored === undefined ? part : toInlinePart(part as UrlPart, stored);
    }),
  );
}

function findStoredFile(part: Part): StoredFile | undefined {
  if (!isUrlPart(part) || !/^file:\/\/\/.*[0-9a-f]{64}/i.test(part.url)) return undefined;
  try {
    const path = fileURLToPath(part.url);
    const digest = basename(dirname(path));
    return /^[0-9a-f]{64}$/.test(digest) ? { path, digest } : undefined;
  } catch {
    return undefined;
  }
}

async function toInlinePart(part: UrlPart, { digest, path }: StoredFile): Promise<Part> {
  const { url: _path, ...rest } = part;
  try {
    const found = await stat(path);
    if (found.size > MAX_INLINE_BYTES) return toNotice(part, "It is larger than allowed.");
    const bytes = found.isFile() ? await readFile(path) : undefined;
    if (bytes !== undefined && hash("sha256", bytes) === digest) return { ...rest, raw: bytes.toString("base64") };
  } catch {
    // It was removed because of its age, or to make space for others.
  }
  return toNotice(part, "It is no longer stored.");
}

/** As text, because some agents accept nothing else, and the rest of the message is still for them. */
function toNotice({ filename }: UrlPart, reason: string): Part {
  const name = filename === undefined ? "" : ` ${JSON.stringify(filename)}`;
  return { text: `[The file${name} could not be sent. ${reason}]` };
}
