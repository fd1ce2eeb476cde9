/** Encodes parts of the model as the text and the files of a post. */

import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { type Loss, toLoss } from "../../../core/model/loss.ts";
import { isDataPart, isRawPart, isTextPart, type Message, type Part } from "../../../core/model/message.ts";
import { isTerminal, type Task } from "../../../core/model/task.ts";
import type { DraftFile } from "../../../core/wire/channel.ts";
import { safeFileName } from "../../../core/wire/safe-file-name.ts";
import { DATA_FILE, endsWithData } from "./decode.ts";
import { LOSSES } from "./losses.ts";

export interface Content {
  readonly body: string;
  readonly files: readonly DraftFile[];
}

/** Larger data is a file. */
const MAX_INLINE_DATA = 4_096;

/** `path` is the path of the object that holds the parts. */
export function encodeMessage(message: Message, path: string, losses: Loss[]): Content {
  const { extensions, metadata, referenceTaskIds } = message;
  if (metadata !== undefined || extensions !== undefined || referenceTaskIds !== undefined) {
    losses.push(toLoss(LOSSES.messageMembers, path));
  }
  const encoder = new PartEncoder(losses);
  return encoder.content([encoder.encode(message.parts, path)]);
}

/**
 * What a task has to show: its artifacts once it has ended, and the message of its status. Without `data`, it is for
 * people: of an artifact that has text, data is left out.
 */
export function encodeOutcome(task: Task, losses: Loss[], { data = true } = {}): Content {
  const { artifacts = [], metadata, status } = task;
  if (metadata !== undefined) losses.push(toLoss(LOSSES.taskMembers, "task.metadata"));
  const encoder = new PartEncoder(losses);
  const results = (isTerminal(status.state) ? artifacts : []).flatMap((artifact, index) => {
    const { description, extensions, metadata: more, name, parts } = artifact;
    const path = `task.artifacts[${index}]`;
    const shown = data ? parts : encoder.withoutData(parts, path);
    const text = encoder.encode(shown, path);
    if (description !== undefined || more !== undefined || extensions !== undefined) {
      losses.push(toLoss(LOSSES.artifactMembers, path));
    }
    return text === "" ? [] : [{ name, path, text }];
  });
  for (const { path } of results.slice(1)) losses.push(toLoss(LOSSES.artifacts, path));
  const isNamed = results.length > 1;
  const texts = results.map(({ name, text }) => (isNamed && name !== undefined ? `${name}:\n${text}` : text));
  if (status.message !== undefined) {
    const text = encoder.encode(status.message.parts, "task.status.message");
    if (texts.length > 0 && text !== "") losses.push(toLoss(LOSSES.statusMessage, "task.status.message"));
    texts.push(text);
  }
  return encoder.content(texts);
}

/** File names are unique among all parts that it encodes. */
class PartEncoder {
  readonly #losses: Loss[];
  readonly #files: DraftFile[] = [];
  readonly #names = new Set<string>();

  constructor(losses: Loss[]) {
    this.#losses = losses;
  }

  content(texts: readonly string[]): Content {
    return { body: texts.filter((text) => text !== "").join("\n\n"), files: this.#files };
  }

  withoutData(parts: readonly Part[], path: string): readonly Part[] {
    const hasText = parts.some((part) => isTextPart(part) && part.text.trim() !== "");
    if (!hasText || !parts.some(isDataPart)) return parts;
    this.#lose("dataBesideText", path);
    return parts.filter((part) => !isDataPart(part));
  }

  /** The text of the parts; their files are kept. */
  encode(parts: readonly Part[], path: string): string {
    const texts: string[] = [];
    const blocks: string[] = [];
    let data: string | undefined;
    for (const [index, part] of parts.entries()) {
      const at = `${path}.parts[${index}]`;
      const reasoning = part.metadata?.[EXTENSIONS.reasoning];
      if (reasoning !== undefined) this.#lose("reasoning", at);
      else if (part.metadata !== undefined) this.#lose("partMetadata", `${at}.metadata`);
      if (reasoning === true) continue;
      const text = this.#part(part, at);
      if (text === undefined || text === "") continue;
      if (isDataPart(part)) {
        data ??= at;
        blocks.push(text);
        continue;
      }
      if (data !== undefined) this.#lose("dataBeforeText", data);
      else if (texts.length > 0 && isTextPart(part)) this.#lose("textParts", at);
      data = undefined;
      texts.push(text);
    }
    if (endsWithData(texts.at(-1) ?? "")) this.#lose("textAsData", path);
    return [...texts, ...blocks].join("\n");
  }

  #part(part: Part, path: string): string | undefined {
    if (isRawPart(part)) {
      this.#attach(part.filename, part.mediaType, Buffer.from(part.raw, "base64"), path);
      return undefined;
    }
    if (isTextPart(part) || isDataPart(part)) {
      if (part.filename !== undefined || part.mediaType !== undefined) this.#lose("partNames", path);
      if (isDataPart(part)) return this.#data(part, path);
      if (!part.text.isWellFormed()) this.#lose("illFormed", `${path}.text`);
      return part.text;
    }
    const { filename, url } = part;
    if (url.slice(0, 5).toLowerCase() === "file:") {
      this.#lose("localFile", `${path}.url`);
      return safeFileName(filename ?? url);
    }
    this.#lose("url", `${path}.url`);
    return filename === undefined ? url : `${filename}: ${url}`;
  }

  #data({ data, filename }: Extract<Part, { readonly data: unknown }>, path: string): string | undefined {
    const json = JSON.stringify(data, undefined, 2);
    if (json.length <= MAX_INLINE_DATA) return `\`\`\`json\n${json}\n\`\`\``;
    this.#lose("largeData", `${path}.data`);
    this.#attach(filename ?? DATA_FILE, "application/json", Buffer.from(json), path);
    return undefined;
  }

  #attach(name: string | undefined, mediaType = "application/octet-stream", bytes: Uint8Array, path: string): void {
    const safe = this.#uniqueName(safeFileName(name ?? ""));
    if (name !== undefined && safe !== name) this.#lose("fileName", `${path}.filename`);
    this.#names.add(safe);
    this.#files.push({ name: safe, mediaType, bytes });
  }

  #uniqueName(name: string): string {
    if (!this.#names.has(name)) return name;
    const dot = name.lastIndexOf(".");
    const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    let number = 2;
    while (this.#names.has(`${stem}-${number}${ending}`)) number++;
    return `${stem}-${number}${ending}`;
  }

  #lose(rule: keyof typeof LOSSES, path: string): void {
    this.#losses.push(toLoss(LOSSES[rule], path));
  }
}
