/**
 * Imports what earlier versions kept in JSON files beside an SQLite store: each is a list of `[key, value]`, and is
 * renamed when its content is in the store.
 */

import { readFile, rename } from "node:fs/promises";
import type { CarrierHost } from "../../../core/dialects/carrier.ts";
import { hasErrorCode, ProtocolError } from "../../../core/model/errors.ts";
import { isObject, type JsonValue } from "../../../core/model/json.ts";
import type { Dispatcher, ReplyTo } from "../../../core/model/operation.ts";
import type { Clock, Log } from "../../../core/model/ports.ts";
import type { Task } from "../../../core/model/task.ts";
import { HTTP_DIALECT, LINK_DIALECT } from "../codec/card.ts";
import { xiaoyiMetadata } from "../codec/metadata.ts";
import { toReplyAddress } from "../runtime/link/owed-replies.ts";
import { ANSWER_DELIVERY } from "../runtime/ports.ts";
import { linkRoute } from "./link-servers.ts";
import { notificationReply } from "./notify/offline-notifications.ts";
import type { XiaoyiOptions } from "./open-xiaoyi.ts";
import { SPACES } from "./record-map.ts";

interface MigrationContext extends Required<Pick<XiaoyiOptions, "http" | "links">> {
  readonly host: Pick<CarrierHost, "records" | "replies"> & { readonly agents: ReadonlyMap<string, Dispatcher> };
  readonly defaultOwner: (agent: string) => string;
  readonly clock: Clock;
  readonly log: Log;
}

type Import = (key: string, value: JsonValue, context: MigrationContext) => Promise<unknown>;

/** By the name of the file; in this order, as a task's notification takes precedence over its answer. */
const IMPORTS: readonly (readonly [name: string, importEntry: Import])[] = [
  ["logins", (key, value, { host }) => putRecord(host, SPACES.logins, key, value)],
  ["phones", (key, value, { host }) => putRecord(host, SPACES.devices, key, value)],
  [
    "contexts",
    (key, value, { host }) => {
      const [[agentId = ""], id] = scopedKey(key);
      return putRecord(host, SPACES.linkContexts(agentId), id, value);
    },
  ],
  [
    "http-contexts",
    (key, value, { host }) => {
      const [[agent = "", owner = ""], id] = scopedKey(key);
      return putRecord(host, SPACES.httpContexts(agent, owner), id, value);
    },
  ],
  ["unanswered", importUnanswered],
  [
    "awaited",
    (key, value, { host }) => {
      const [[dialect = "", agent = "", owner = "", apiId = ""], taskId] = scopedKey(key);
      const { sessionId, since } = value as { readonly sessionId: string; readonly since: number };
      const reply = notificationReply({ dialect, agent, owner, apiId }, { sessionId, since });
      return putReply(host, { agent, owner }, taskId, reply, dialect);
    },
  ],
  // Times of notifications in the last seconds before the server was stopped.
  ["told", () => Promise.resolve()],
];

/** Entries imported at the same time: they share commits. */
const BATCH = 500;
/** Number of messages of a task that are searched for the user's last one. */
const HISTORY_LENGTH = 100;

export async function migrateFiles(database: string, context: MigrationContext): Promise<void> {
  for (const [name, importEntry] of IMPORTS) {
    const file = `${database}.xiaoyi-${name}.json`;
    const text = await readFile(file, "utf8").catch((error: unknown) => {
      if (hasErrorCode(error, "ENOENT")) return undefined;
      throw error;
    });
    if (text === undefined) continue;
    const entries = parseEntries(text);
    if (entries === undefined) {
      await rename(file, `${file}.damaged`);
      context.log.error({ file: `${file}.damaged` }, "A file beside the store is damaged and could not be imported.");
      continue;
    }
    for (let from = 0; from < entries.length; from += BATCH) {
      const batch = entries.slice(from, from + BATCH);
      await Promise.all(batch.map((entry) => importOne(entry, importEntry, file, context)));
    }
    await rename(file, `${file}.migrated`);
    context.log.info({ file, entries: entries.length }, "A file beside the store was imported; it can be deleted.");
  }
}

/** One entry that cannot be read does not keep the others from being imported. */
async function importOne(
  [key, value]: readonly [string, JsonValue],
  importEntry: Import,
  file: string,
  context: MigrationContext,
): Promise<void> {
  try {
    await importEntry(key, value, context);
  } catch (error) {
    if (ProtocolError.is(error)) throw error;
    context.log.warn({ file, key, err: error }, "An entry of a file beside the store cannot be imported.");
  }
}

function parseEntries(text: string): readonly (readonly [string, JsonValue])[] | undefined {
  try {
    const entries: unknown = JSON.parse(text);
    const isEntry = (entry: unknown) => Array.isArray(entry) && entry.length === 2 && typeof entry[0] === "string";
    return Array.isArray(entries) && entries.every(isEntry) ? entries : undefined;
  } catch {
    return undefined;
  }
}

/** Keys of what belongs to one entry of the configuration: its names, themselves as JSON, and an id. */
function scopedKey(key: string): [readonly string[], string] {
  const [scope, id] = JSON.parse(key) as [string, string];
  return [JSON.parse(scope) as readonly string[], id];
}

function putRecord({ records }: MigrationContext["host"], space: string, key: string, value: JsonValue) {
  return records.put({ space, key, value: JSON.stringify(value) });
}

/** From the first event: it is not known how much was delivered. */
function putReply(
  { replies }: MigrationContext["host"],
  { agent, owner }: { readonly agent: string; readonly owner: string },
  taskId: string,
  reply: ReplyTo,
  dialect: string,
) {
  return replies.put({ agent, tenant: "", owner }, taskId, { ...reply, dialect, after: 0 });
}

/** Answers over a link are resumed; HTTP callers have left, and are notified if that is configured. */
async function importUnanswered(key: string, value: JsonValue, context: MigrationContext): Promise<void> {
  const { clock, defaultOwner, host, http, links } = context;
  const [[dialect = "", name = "", owner = ""], taskId] = scopedKey(key);
  if (dialect === HTTP_DIALECT) {
    const isOwn = (entry: (typeof http)[number]) =>
      entry.agent === name && (entry.owner ?? defaultOwner(name)) === owner && entry.push !== undefined;
    const apiId = http.find(isOwn)?.push?.apiId;
    if (apiId === undefined) return;
    const scope = { agent: name, owner };
    const reply = notificationReply({ dialect, ...scope, apiId }, { sessionId: String(value), since: clock.now() });
    await putReply(host, scope, taskId, reply, dialect);
    return;
  }
  const entry = links.find(({ agentId }) => agentId === name);
  if (entry === undefined) return;
  const { agent } = entry;
  const address = addressInHistory(await findTask(host, agent, owner, taskId));
  if (address === undefined) return;
  const reply: ReplyTo = { id: ANSWER_DELIVERY, route: linkRoute(entry, links), address, wants: "events" };
  await putReply(host, { agent, owner }, taskId, reply, dialect);
}

async function findTask({ agents }: MigrationContext["host"], agent: string, owner: string, id: string) {
  const call = { caller: { owner, authenticated: true }, tenant: "", extensions: [], dialect: LINK_DIALECT };
  try {
    return await agents.get(agent)?.dispatch({ kind: "get", id, historyLength: HISTORY_LENGTH }, call);
  } catch (error) {
    if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
    throw error;
  }
}

/** The address was stored with the user's last message, the keys of frames with each. */
function addressInHistory(task: Task | undefined): string | undefined {
  const links = (task?.history ?? []).flatMap(({ metadata, role }) => {
    const link = role === "ROLE_USER" ? xiaoyiMetadata(metadata)?.link : undefined;
    return isObject(link) ? [link] : [];
  });
  const address = toReplyAddress(links.at(-1));
  if (address === undefined) return undefined;
  const frames = links.flatMap((link) => toReplyAddress(link)?.frames ?? []);
  return JSON.stringify({ ...address, frames, receiver: "" });
}
