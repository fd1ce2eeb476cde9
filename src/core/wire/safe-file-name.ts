/** File names chosen by others, made safe for any folder and any system. */

/** Of a name in UTF-8; the systems' own limit is 255, and some append to names. */
const MAX_NAME_BYTES = 200;
const MAX_EXTENSION_BYTES = 16;

/** Separators, control and formatting characters (some turn text around), and what Windows forbids in names. */
const HARMFUL = /[\p{C}\p{Zl}\p{Zp}<>:"|?*]/gu;
const SPACES = /\p{Zs}+/gu;
/** Hidden files, options of commands, and what Windows drops from the end of a name. */
const UNSAFE_EDGES = /^[\s.~-]+|[\s.]+$/g;
/** Device names of Windows, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\.|$)/i;

/** `otherwise` is used where nothing of the name is safe. */
export function safeFileName(name: string, otherwise = "file"): string {
  const segments = name.split(/[/\\]/).filter((segment) => segment !== "");
  const last = segments.at(-1) ?? "";
  const harmless = last.toWellFormed().normalize("NFC").replaceAll(HARMFUL, "_").replaceAll(SPACES, " ");
  const trimmed = harmless.replaceAll(UNSAFE_EDGES, "");
  if (trimmed === "") return otherwise;
  return shorten(RESERVED.test(trimmed) ? `_${trimmed}` : trimmed);
}

/** Keeps the ending, which shows what the file is. */
function shorten(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name;
  const dot = name.lastIndexOf(".");
  const ending = dot > 0 && Buffer.byteLength(name.slice(dot)) <= MAX_EXTENSION_BYTES ? name.slice(dot) : "";
  const room = MAX_NAME_BYTES - Buffer.byteLength(ending);
  let stem = "";
  let bytes = 0;
  for (const character of name.slice(0, name.length - ending.length)) {
    bytes += Buffer.byteLength(character);
    if (bytes > room) break;
    stem += character;
  }
  return stem.replaceAll(UNSAFE_EDGES, "") + ending;
}
