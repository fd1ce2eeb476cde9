/** Files as text, where they are text. */

const ENCODINGS = [
  { mark: [0xef, 0xbb, 0xbf], label: "utf-8" },
  { mark: [0xff, 0xfe], label: "utf-16le" },
  { mark: [0xfe, 0xff], label: "utf-16be" },
] as const;

/** Undefined for what is no text in UTF-8, or in what its first bytes say it is in. */
export function decodeText(bytes: Uint8Array): string | undefined {
  const encoding = ENCODINGS.find(({ mark }) => mark.every((byte, index) => bytes[index] === byte));
  try {
    const text = new TextDecoder(encoding?.label ?? "utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    // Bytes that mean nothing in this encoding.
    return undefined;
  }
}
