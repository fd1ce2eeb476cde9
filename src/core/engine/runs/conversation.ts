import { fieldsOf, isObject, type JsonValue, listOf } from "../../model/json.ts";
import type { Records } from "../../model/records.ts";
import type { ConversationMemory } from "../agent.ts";

/** Conversations of one owner with one agent; the oldest are forgotten. */
const MAX_CONVERSATIONS = 1_000;
const CONVERSATION_TTL_MS = 30 * 24 * 60 * 60 * 1000;
/** Of one conversation, as JSON. Every change writes all of it, so it has to stay small. */
const MAX_LENGTH = 256 * 1024;

interface ConversationOptions {
  readonly records: Pick<Records, "record" | "update">;
  readonly agent: string;
  readonly owner: string;
  readonly contextId: string;
  /** The message that is worked on: a run that is repeated after a crash replaces what it appended. */
  readonly origin: string;
  /** Resolves when what the run wrote so far is durable. */
  whenFlushed(): Promise<unknown>;
}

/** An item of a list, with the message that it was appended for and its number there. */
type Item = readonly [origin: string, value: JsonValue];

interface Content {
  readonly values: Readonly<Record<string, JsonValue>>;
  readonly lists: Readonly<Record<string, readonly Item[]>>;
}

export function createConversation(options: ConversationOptions): ConversationMemory {
  const { agent, contextId, origin, owner, records } = options;
  // The same context id of two owners, or of two agents, is not the same conversation.
  const space = `conversation:${JSON.stringify([agent, owner])}`;
  const appended = new Map<string, number>();

  async function change(make: (before: Content) => Content): Promise<void> {
    await options.whenFlushed();
    const record = { space, key: contextId, ttlMs: CONVERSATION_TTL_MS, keep: MAX_CONVERSATIONS };
    await records.update(record, (before) => JSON.stringify(make(parse(before))));
  }

  return {
    async get<T extends JsonValue>(key: string): Promise<T | undefined> {
      const { lists, values } = parse(await records.record(space, contextId));
      const list = ownValue(lists, key);
      return (list === undefined ? ownValue(values, key) : list.map(([, value]) => value)) as T | undefined;
    },

    async set(key, value) {
      await change(({ lists: { [key]: _list, ...lists }, values: { [key]: _value, ...values } }) => {
        const content = { lists, values: value === undefined ? values : { ...values, [key]: value } };
        if (lengthOf(content) <= MAX_LENGTH) return content;
        throw new RangeError(`turn.conversation holds at most ${MAX_LENGTH} characters of JSON.`);
      });
    },

    async append(key, value) {
      const number = appended.get(key) ?? 0;
      appended.set(key, number + 1);
      const item: Item = [`${origin}#${number}`, value];
      if (lengthOf(item) > MAX_LENGTH / 2) {
        throw new RangeError(`turn.conversation takes items of at most ${MAX_LENGTH / 2} characters of JSON.`);
      }
      await change(({ lists, values: { [key]: before, ...values } }) => {
        if (before !== undefined && !Array.isArray(before)) {
          throw new TypeError(`turn.conversation: the value of "${key}" is not a list.`);
        }
        const items = ownValue(lists, key) ?? (before ?? []).map((one): Item => ["", one]);
        return withItem({ values, lists }, key, items, item);
      });
    },
  };
}

/** The oldest items of the list are left out where there is no room for all. */
function withItem({ lists, values }: Content, key: string, before: readonly Item[], item: Item): Content {
  const at = before.findIndex(([origin]) => origin === item[0]);
  const items = at < 0 ? [...before, item] : before.with(at, item);
  let room = MAX_LENGTH - lengthOf({ values, lists: { ...lists, [key]: [] } });
  const first = items.findLastIndex((one) => {
    room -= lengthOf(one) + 1;
    return room < 0;
  });
  return { values, lists: { ...lists, [key]: items.slice(first + 1) } };
}

const lengthOf = (value: object) => JSON.stringify(value).length;

function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** Empty for a record that is absent or damaged. */
function parse(stored: string | undefined): Content {
  try {
    const { lists, values } = fieldsOf(JSON.parse(stored ?? "{}"));
    const readable = Object.entries(fieldsOf(lists)).map(([key, list]) => [key, listOf(list).filter(isItem)] as const);
    return { lists: Object.fromEntries(readable), values: isObject(values) ? (values as Content["values"]) : {} };
  } catch {
    return { lists: {}, values: {} };
  }
}

const isItem = (item: unknown): item is Item => Array.isArray(item) && item.length === 2 && typeof item[0] === "string";
