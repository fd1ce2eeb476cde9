/** What callers may pass to `send`, `stream` and `reply`, as the operation that is sent. */

import { randomUUID } from "node:crypto";
import { isObject } from "../model/json.ts";
import { mediaTypeOfName } from "../model/media-types.ts";
import type { Message, Part, RawPart } from "../model/message.ts";
import type { SendInput, SendOutcome } from "../model/operation.ts";
import { rejectUnknownKeys } from "../model/suggestions.ts";
import type { Task } from "../model/task.ts";
import { canParseUrl } from "../model/url.ts";
import type { FileInput, SendContent, SendOptions, SendRequest } from "./options.ts";
import { file } from "./parts.ts";

const KINDS = ["text", "data", "raw", "url"];
const REQUEST_MEMBERS = Object.keys({
  message: true,
  configuration: true,
  metadata: true,
} satisfies Record<keyof SendRequest, true>);
const MESSAGE_MEMBERS = Object.keys({
  messageId: true,
  contextId: true,
  taskId: true,
  role: true,
  parts: true,
  metadata: true,
  extensions: true,
  referenceTaskIds: true,
} satisfies Record<keyof Message, true>);
const EXPECTED = 'text, a part such as { text: "…" }, a list of parts, or a request { message: { parts } }';

/** Throws a TypeError for what cannot be sent. Files are read later: see `toSendInput`. */
export function toRequest(what: string, content: SendContent, options: SendOptions): SendRequest {
  const { contextId, files, metadata, taskId } = options;
  if (files !== undefined && !Array.isArray(files)) throw new TypeError(`${what}: files must be a list.`);
  if (metadata !== undefined && !isObject(metadata)) {
    throw new TypeError(`${what}: metadata must be an object, but is ${describe(metadata)}.`);
  }
  const request = toRequestOf(what, content, files !== undefined && files.length > 0);
  const { message } = request;
  return {
    ...request,
    metadata: metadata === undefined ? request.metadata : { ...request.metadata, ...metadata },
    message: {
      ...message,
      ...agree(what, "taskId", message.taskId, taskId),
      ...agree(what, "contextId", message.contextId, contextId),
    },
  };
}

function toRequestOf(what: string, content: unknown, hasFiles: boolean): SendRequest {
  if (typeof content === "string") return { message: { parts: [{ text: content }] } };
  // Files alone are a message, too.
  if (content === undefined && hasFiles) return { message: { parts: [] } };
  if (isPart(content)) return { message: { parts: [content] } };
  if (Array.isArray(content)) return { message: { parts: checkParts(what, content, hasFiles) } };
  if (isObject(content) && isObject(content.message) && Array.isArray(content.message.parts)) {
    checkParts(what, content.message.parts, hasFiles);
    rejectUnknownKeys(what, content, REQUEST_MEMBERS);
    rejectUnknownKeys(`${what}: message`, content.message, MESSAGE_MEMBERS);
    return content as unknown as SendRequest;
  }
  throw new TypeError(`${what}: needs ${EXPECTED}; it was called with ${describe(content)}.`);
}

function checkParts(what: string, parts: readonly unknown[], hasFiles: boolean): readonly Part[] {
  if (parts.length === 0 && !hasFiles) throw new TypeError(`${what}: the list of parts is empty.`);
  const wrong = parts.findIndex((part) => !isPart(part));
  if (wrong < 0) return parts as readonly Part[];
  const hint = typeof parts[wrong] === "string" ? "; a text is a part as { text: … }" : "";
  throw new TypeError(
    `${what}: parts[${wrong}] must have exactly one of ${KINDS.join(", ")}, but is ${describe(parts[wrong])}${hint}.`,
  );
}

function agree(what: string, name: "contextId" | "taskId", own: string | undefined, given: string | undefined): object {
  if (given === undefined) return {};
  if (own !== undefined && own !== given) {
    throw new TypeError(`${what}: the message has the ${name} ${own} and the options ${given}; set only one of them.`);
  }
  requireId(what, given, name);
  return { [name]: given };
}

/** The message id is created once, so that a repeated send is the same message. */
export async function toSendInput(request: SendRequest, files: readonly FileInput[] = []): Promise<SendInput> {
  const { message, ...rest } = request;
  const further = await Promise.all(files.map(readFileInput));
  const parts = further.length === 0 ? message.parts : [...message.parts, ...further];
  return {
    ...rest,
    message: { ...message, messageId: message.messageId ?? randomUUID(), role: message.role ?? "ROLE_USER", parts },
  };
}

/** Where an answer goes: to the task, or to the conversation if the agent answered without a task. */
export function toReplyTarget(to: string | Task | SendOutcome): Pick<Message, "contextId" | "taskId"> {
  const given: unknown = to;
  if (typeof given === "string") return { taskId: requireId("reply", given, "task id") };
  if (!isObject(given)) throw new TypeError(`reply: needs a task or its id first, but got ${describe(given)}.`);
  const message = isObject(given.message) ? given.message : undefined;
  const task = message === undefined && isObject(given.task) ? given.task : given;
  const ids = message === undefined ? { contextId: task.contextId, taskId: task.id } : message;
  const { contextId, taskId } = ids as { readonly contextId?: unknown; readonly taskId?: unknown };
  const found = {
    ...(typeof taskId === "string" && taskId !== "" && { taskId }),
    ...(typeof contextId === "string" && contextId !== "" && { contextId }),
  };
  if (Object.keys(found).length > 0) return found;
  throw new TypeError("reply: what it was given is neither a task, nor what send resolves to, nor a task id.");
}

/** Ids are opaque, but an object or undefined would reach the agent as something that no task has. */
export function requireId(what: string, id: unknown, name = "id"): string {
  if (typeof id === "string" && id !== "") return id;
  throw new TypeError(`${what}: the ${name} must be a string that is not empty, but is ${describe(id)}.`);
}

async function readFileInput(input: FileInput, index: number): Promise<Part> {
  const what = `files[${index}]`;
  if (typeof input === "string") return isWebUrl(input) ? toFile({ url: input }) : readLocalFile(what, input);
  if (input instanceof Blob) {
    const name = "name" in input ? String(input.name) : undefined;
    return toFile({ bytes: new Uint8Array(await input.arrayBuffer()), name, mediaType: input.type || undefined });
  }
  if (typeof input === "object" && input !== null && "raw" in input) return input;
  if (typeof input === "object" && input !== null && ("url" in input || "bytes" in input)) {
    rejectUnknownKeys(what, input, ["bytes", "url", "name", "filename", "mediaType", "metadata"]);
    return toFile(input);
  }
  throw new TypeError(`${what} must be a path, a URL, a Blob, { bytes, name } or { url }, but is ${describe(input)}.`);
}

async function readLocalFile(what: string, path: string): Promise<Part> {
  const [{ readFile }, { basename }] = await Promise.all([import("node:fs/promises"), import("node:path")]);
  try {
    return toFile({ bytes: await readFile(path), name: basename(path) });
  } catch (error) {
    throw new TypeError(`${what}: cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

type NamedFile = Exclude<FileInput, string | Blob | RawPart>;

function toFile({ name, ...source }: NamedFile): Part {
  const filename = source.filename ?? name ?? ("url" in source ? lastSegment(source.url) : undefined);
  const mediaType = source.mediaType ?? mediaTypeOfName(filename ?? "");
  const known = { ...source, filename, mediaType };
  return file(known as Parameters<typeof file>[0]);
}

function lastSegment(url: string): string | undefined {
  const segment = canParseUrl(url) ? new URL(url).pathname.split("/").pop() : undefined;
  try {
    return segment === "" || segment === undefined ? undefined : decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function isWebUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && canParseUrl(value);
}

function isPart(value: unknown): value is Part {
  return isObject(value) && KINDS.filter((kind) => Object.hasOwn(value, kind)).length === 1;
}

function describe(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (typeof value !== "object") return JSON.stringify(value) ?? typeof value;
  if (Array.isArray(value)) return "a list";
  const keys = Object.keys(value).slice(0, 5);
  return keys.length === 0 ? "an object without members" : `an object with ${keys.join(", ")}`;
}
