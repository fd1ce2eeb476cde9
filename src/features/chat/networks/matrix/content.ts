/** Contents of `m.room.message` events, both ways. */

import type { DraftFile, PostDraft } from "../../../../core/wire/channel.ts";

export interface MatrixEvent {
  readonly type: string;
  readonly event_id: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly content: Readonly<Record<string, unknown>>;
  readonly state_key?: string;
}

interface Upload {
  readonly file: DraftFile;
  readonly uri: string;
}

/** What an event means, without what only its room knows. */
interface MatrixMessage {
  readonly text: string;
  readonly bot: boolean;
  readonly mentions: readonly string[];
  readonly replyTo?: string;
  readonly thread?: string;
  readonly edits?: string;
  readonly file?: { readonly name: string; readonly mediaType: string; readonly size?: number; readonly uri: string };
}

/** MSC3955: written by a program. */
const AUTOMATED = "org.matrix.msc1767.automated";
const FILE_TYPES: ReadonlySet<unknown> = new Set(["m.file", "m.image", "m.audio", "m.video"]);
const TEXT_TYPES: ReadonlySet<unknown> = new Set(["m.text", "m.notice", "m.emote"]);
/** An edit repeats its text for clients that do not know edits; they need not see all of it. */
const MAX_FALLBACK = 200;

export function toContent(draft: PostDraft, upload?: Upload): object {
  return { ...toBody(draft, upload), ...toRelation(draft) };
}

export function toReplacement(id: string, draft: PostDraft): object {
  return {
    ...toBody({ ...draft, text: `* ${draft.text.slice(0, MAX_FALLBACK).toWellFormed()}` }),
    "m.new_content": toBody(draft),
    "m.relates_to": { rel_type: "m.replace", event_id: id },
  };
}

function toBody({ mentions = [], text }: PostDraft, upload?: Upload): object {
  const marks = { [AUTOMATED]: true, "m.mentions": { user_ids: mentions.map(({ id }) => id) } };
  if (upload === undefined) return { msgtype: "m.text", body: text, ...marks };
  const { file, uri } = upload;
  const info = { mimetype: file.mediaType, size: file.bytes.byteLength };
  return {
    msgtype: fileTypeOf(file.mediaType),
    body: text || file.name,
    filename: file.name,
    url: uri,
    info,
    ...marks,
  };
}

/** What clients show in place; they offer other files for download, vector images among them. */
function fileTypeOf(mediaType: string): string {
  const [, kind] = /^(image(?=\/(?:png|jpeg|gif|webp|avif)$)|audio(?=\/)|video(?=\/))/.exec(mediaType) ?? [];
  return kind === undefined ? "m.file" : `m.${kind}`;
}

function toRelation({ replyTo, thread }: PostDraft): object {
  const reply = replyTo ?? thread;
  if (reply === undefined) return {};
  const threaded = { rel_type: "m.thread", event_id: thread, is_falling_back: replyTo === undefined };
  return { "m.relates_to": { ...(thread !== undefined && threaded), "m.in_reply_to": { event_id: reply } } };
}

/** Undefined for an event that is not a post. */
export function readMessage({ content, type }: MatrixEvent): MatrixMessage | undefined {
  if (type !== "m.room.message") return undefined;
  const relation = toRecord(content["m.relates_to"]);
  const replaced = relation.rel_type === "m.replace" ? relation.event_id : undefined;
  const body = typeof replaced === "string" ? toRecord(content["m.new_content"]) : content;
  const file = readFile(body);
  if (typeof body.body !== "string" || (file === undefined && !TEXT_TYPES.has(body.msgtype))) return undefined;
  const thread = relation.rel_type === "m.thread" ? relation.event_id : undefined;
  const reply = toRecord(relation["m.in_reply_to"]).event_id;
  const replyTo = thread !== undefined && relation.is_falling_back === true ? undefined : reply;
  const text = typeof reply === "string" ? removeQuote(body.body) : body.body;
  return {
    text: file !== undefined && text === file.name ? "" : text,
    bot: body.msgtype === "m.notice" || [AUTOMATED, "m.automated"].some((mark) => content[mark] === true),
    mentions: readMentions(body),
    replyTo: typeof replyTo === "string" ? replyTo : undefined,
    thread: typeof thread === "string" ? thread : undefined,
    edits: typeof replaced === "string" ? replaced : undefined,
    file,
  };
}

/** Replies of older clients begin with a quotation of what they answer. */
function removeQuote(body: string): string {
  if (!/^> (?:\* )?<@/.test(body)) return body;
  const lines = body.split("\n");
  const end = lines.findIndex((line) => !line.startsWith(">"));
  if (end < 0) return "";
  return lines.slice(lines[end] === "" ? end + 1 : end).join("\n");
}

function readMentions(content: Readonly<Record<string, unknown>>): string[] {
  const named = content["m.mentions"];
  if (named !== undefined) {
    const ids = toRecord(named).user_ids;
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
  }
  const html = typeof content.formatted_body === "string" ? content.formatted_body : "";
  // A reply of an older client quotes a mention of the person that it answers, which is a mention.
  const links = html.matchAll(/href="https:\/\/matrix\.to\/#\/([^"?]+)/g);
  return [...new Set([...links].map(([, target = ""]) => decode(target)).filter((id) => id.startsWith("@")))];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readFile(content: Readonly<Record<string, unknown>>): MatrixMessage["file"] {
  const { body, filename, msgtype, url } = content;
  const info = toRecord(content.info);
  if (!FILE_TYPES.has(msgtype) || typeof url !== "string" || !/^mxc:\/\/[^/]+\/[^/]+$/.test(url)) return undefined;
  const { mimetype, size } = info;
  return {
    name: typeof filename === "string" ? filename : String(body),
    mediaType: typeof mimetype === "string" ? mimetype : "application/octet-stream",
    size: typeof size === "number" ? size : undefined,
    uri: url,
  };
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
