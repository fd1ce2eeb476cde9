import { type Fields, fieldsIn, isFields } from "../json.ts";
import { Misread } from "./misread.ts";

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoningText"; readonly text: string }
  | { readonly kind: "data"; readonly data: Fields }
  | { readonly kind: "file"; readonly file: FilePart };

export interface FilePart {
  readonly name: string;
  readonly mimeType: string;
  /** Of a file that was uploaded before. */
  readonly fileId?: string;
  /** Nobody has seen a phone show these two. */
  readonly uri?: string;
  readonly bytes?: string;
}

/** Throws `Misread`. */
export function readParts(value: unknown, where: string): readonly Part[] {
  if (!Array.isArray(value) || value.length === 0) throw new Misread(`${where} is no list with parts in it.`);
  return value.map((part) => readPart(part));
}

export function readPart(value: unknown): Part {
  const part = fieldsIn(value);
  switch (part.kind) {
    case "text":
      return { kind: "text", text: readText(part, "text") };
    case "reasoningText":
      return { kind: "reasoningText", text: readText(part, "reasoningText") };
    case "data":
      if (!isFields(part.data)) throw new Misread("A data part has no object in data.");
      return { kind: "data", data: part.data };
    case "file":
      return { kind: "file", file: readFile(fieldsIn(part.file)) };
    default:
      throw new Misread(`There is no part of kind ${JSON.stringify(part.kind)}.`);
  }
}

/** The text of a part stands in a member named like its kind. */
function readText(part: Fields, member: "reasoningText" | "text"): string {
  const text = part[member];
  if (typeof text !== "string") throw new Misread(`A ${member} part has no text in ${member}.`);
  return text;
}

function readFile(file: Fields): FilePart {
  const { bytes, fileId, mimeType, name, uri } = file;
  if (typeof name !== "string" || typeof mimeType !== "string")
    throw new Misread("A file part lacks name or mimeType.");
  if (typeof fileId === "string") return { name, mimeType, fileId };
  if (typeof uri === "string") return { name, mimeType, uri };
  if (typeof bytes === "string") return { name, mimeType, bytes };
  throw new Misread("A file part has neither fileId nor uri nor bytes.");
}
