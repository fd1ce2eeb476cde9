import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { JsonValue } from "../../model/json.ts";
import { mediaTypeOfName } from "../../model/media-types.ts";
import type { Part } from "../../model/message.ts";
import { canParseUrl } from "../../model/url.ts";
import { usageError } from "../errors.ts";

/** A part given as a flag. */
export interface PartFlag {
  readonly kind: "text" | "file" | "data";
  readonly value: string;
  mediaType?: string;
}

type InputReader = () => Promise<Buffer>;

/** Positional arguments first, then the flags in command line order. `-` means standard input. */
export async function readParts(
  args: readonly string[],
  flags: readonly PartFlag[],
  input: { readonly isTerminal: boolean; readonly read: InputReader },
  example = 'dragoman send -a <agent> --text "hello"',
): Promise<readonly Part[]> {
  const onInput =
    flags.filter((flag) => flag.kind !== "text" && flag.value === "-").length +
    args.filter((arg) => arg === "-").length;
  if (onInput > 1) throw usageError("Standard input can be read only once.");
  const parts: Part[] = [];
  if (args.length === 1 && args[0] === "-") parts.push({ text: await readText(input.read) });
  else if (args.length > 0) parts.push({ text: args.join(" ") });
  for (const flag of flags) parts.push(await toPart(flag, input.read));
  if (parts.length > 0) return parts;
  const piped = input.isTerminal ? "" : await readText(input.read);
  if (piped === "")
    throw usageError(
      "The message is missing.",
      `Pass it as an argument, with --text, --file or --data, or on standard input: ${example}`,
    );
  return [{ text: piped }];
}

async function readText(read: InputReader): Promise<string> {
  // Strip the newline that ends piped input.
  return (await read()).toString("utf8").replace(/\r?\n$/, "");
}

async function toPart(flag: PartFlag, read: InputReader): Promise<Part> {
  const given = flag.mediaType === undefined ? undefined : { mediaType: flag.mediaType };
  switch (flag.kind) {
    case "text":
      return { text: flag.value, ...given };
    case "data":
      return { data: await readData(flag.value, read), ...(given ?? { mediaType: "application/json" }) };
    case "file":
      return isWebUrl(flag.value) ? urlPart(flag.value, given) : filePart(flag.value, given, read);
  }
}

async function readData(value: string, read: InputReader): Promise<JsonValue> {
  const inline = /^\s*[[{]/.test(value);
  const text =
    value === "-"
      ? (await read()).toString("utf8")
      : inline
        ? value
        : (await readLocalFile("--data", value)).toString("utf8");
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    const where = value === "-" ? "Standard input" : inline ? "The value of --data" : value;
    throw usageError(`${where} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isWebUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && canParseUrl(value);
}

function urlPart(url: string, given: { mediaType: string } | undefined): Part {
  const filename = decodeName(basename(new URL(url).pathname));
  return { url, filename: filename || undefined, ...(given ?? inferMediaType(filename)) };
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

async function filePart(path: string, given: { mediaType: string } | undefined, read: InputReader): Promise<Part> {
  if (path === "-") return { raw: (await read()).toString("base64"), ...given };
  const filename = basename(path);
  const bytes = await readLocalFile("--file", path);
  return { raw: bytes.toString("base64"), filename, ...(given ?? inferMediaType(filename)) };
}

async function readLocalFile(flag: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw usageError(
      `${flag}: cannot read ${path} (${error instanceof Error && "code" in error ? error.code : error}).`,
    );
  }
}

function inferMediaType(filename: string): { mediaType: string } | undefined {
  const mediaType = mediaTypeOfName(filename);
  return mediaType === undefined ? undefined : { mediaType };
}

export async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk as Buffer));
  return Buffer.concat(chunks);
}
