/** Contents of Feishu messages, both ways. */

import type { Participant } from "../../../../core/wire/channel.ts";

/** Of the event `im.message.receive_v1`, as far as it is used; nothing of it is certain. */
export interface FeishuEvent {
  readonly sender?: { readonly sender_id?: { readonly open_id?: string }; readonly sender_type?: string };
  readonly message?: {
    readonly message_id?: string;
    readonly root_id?: string;
    readonly parent_id?: string;
    readonly thread_id?: string;
    readonly create_time?: string;
    readonly chat_id?: string;
    readonly chat_type?: string;
    readonly message_type?: string;
    readonly content?: string;
    readonly mentions?: readonly FeishuMention[];
  };
}

interface FeishuMention {
  /** Where it is in the text, e.g. `@_user_1`. */
  readonly key?: string;
  readonly id?: { readonly open_id?: string };
  readonly name?: string;
}

export interface FeishuFile {
  readonly key: string;
  readonly name: string;
  readonly type: "file" | "image";
}

type Json = Readonly<Record<string, unknown>>;

/**
 * A rich text of one paragraph. In messages of the type `text`, Feishu interprets tags and links; in an element of a rich
 * text it does not.
 */
export function toRichText(text: string, mentions: readonly Participant[]): string {
  const names = mentions.flatMap(({ id }) => [
    { tag: "at", user_id: id },
    { tag: "text", text: " " },
  ]);
  return JSON.stringify({ zh_cn: { title: "", content: [[...names, { tag: "text", text }]] } });
}

export function readContent(type: string, content: string, mentions: readonly FeishuMention[]) {
  const json = parseObject(content);
  return { text: nameMentions(readText(type, json), mentions), files: readFiles(type, json) };
}

function readText(type: string, json: Json): string {
  if (type === "text") return toText(json.text);
  if (type !== "post") return "";
  const lines = readParagraphs(json).map((line) => line.map(readElement).join(""));
  const title = toText(json.title);
  return (title === "" ? lines : [title, ...lines]).join("\n");
}

function readElement(element: Json): string {
  if (element.tag !== "at") return toText(element.text);
  const { user_id: id, user_name: name } = element;
  return typeof id === "string" && id.startsWith("@_") ? id : `@${toText(name)}`;
}

function readFiles(type: string, json: Json): FeishuFile[] {
  if (type === "post") {
    const images = readParagraphs(json).flatMap((line) => line.filter(({ tag }) => tag === "img"));
    return images.flatMap(({ image_key }) => toFile("image", image_key, `${image_key}.png`));
  }
  if (type === "image") return toFile("image", json.image_key, `${json.image_key}.png`);
  const isFile = type === "file" || type === "audio" || type === "media";
  return isFile ? toFile("file", json.file_key, toText(json.file_name) || `${json.file_key}`) : [];
}

function toFile(type: FeishuFile["type"], key: unknown, name: string): FeishuFile[] {
  return typeof key === "string" ? [{ key, name, type }] : [];
}

/** Those before the text stay as they are: a name may have spaces. */
function nameMentions(text: string, mentions: readonly FeishuMention[]): string {
  const [leading = ""] = /^\s*(?:@_(?:user_\d+|all)\s+)*/.exec(text) ?? [];
  const named = text.slice(leading.length).replaceAll(/@_user_\d+/g, (key) => {
    const name = mentions.find((mention) => mention.key === key)?.name;
    return name === undefined ? key : `@${name}`;
  });
  return leading + named;
}

function readParagraphs(json: Json): Json[][] {
  const { content } = json;
  if (!Array.isArray(content)) return [];
  return content.filter(Array.isArray).map((line: unknown[]) => line.filter(isObject));
}

function parseObject(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
