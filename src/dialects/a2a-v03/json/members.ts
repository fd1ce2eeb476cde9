/**
 * Members of JSON objects, read one by one: in camelCase or snake_case, `null` for absent, empty text and lists as good
 * as absent. What does not fit is reported to the reading, which refuses the whole in the end.
 */

import { type ErrorCode, ProtocolError } from "../../../model/errors.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import { type Loss, type LossRule, type Lossy, toLoss } from "../../../model/loss.ts";
import { snakeCase } from "../../shared/proto/json-codec.ts";
import { Reading, type ReadOptions } from "../../shared/proto/json-reading.ts";

export type Members = Readonly<Record<string, unknown>>;

/** One pass over one value, with what it lost. */
export class JsonReading extends Reading {
  readonly losses: Loss[] = [];

  constructor(options: ReadOptions) {
    super(options, false);
  }

  /** `path` leads on from what is being read. */
  lose(rule: LossRule, path: string): void {
    const where = this.where();
    this.losses.push(toLoss(rule, where === "" ? path : `${where}.${path}`));
  }
}

/** What could be read, or a ProtocolError that names every member that does not fit. */
export function finishReading<T>(value: T, { violations, losses }: JsonReading, code: ErrorCode): Lossy<T> {
  const [first] = violations;
  if (first === undefined) return { value, losses };
  const where = first.field === "" ? "the value" : first.field;
  const more = violations.length === 1 ? "" : ` (and ${violations.length - 1} more)`;
  throw new ProtocolError(code, `${where} ${first.description}${more}`, { violations });
}

const NO_MEMBERS: Members = {};

export function membersOf(value: unknown, reading: Reading): Members {
  if (isObject(value)) return value;
  reading.violate("must be an object");
  return NO_MEMBERS;
}

const SNAKE_CASE = new Map<string, string>();

function snakeCaseOf(name: string): string {
  let snake = SNAKE_CASE.get(name);
  if (snake === undefined) {
    snake = snakeCase(name);
    SNAKE_CASE.set(name, snake);
  }
  return snake;
}

/** As the peer spells it. */
function spellingOf(members: Members, name: string): string {
  return (members[name] ?? undefined) === undefined ? snakeCaseOf(name) : name;
}

/** Never `null`. */
export function memberOf(members: Members, name: string, reading: Reading): unknown {
  const found = members[name] ?? undefined;
  const snake = snakeCaseOf(name);
  if (snake === name) return found;
  const other = members[snake] ?? undefined;
  if (found !== undefined && other !== undefined) reading.violateMember(snake, "is given in both spellings");
  return found ?? other;
}

/** Runs `read` on a member that is there, with its name on the path. */
export function readMember<T>(
  members: Members,
  name: string,
  reading: JsonReading,
  read: (value: unknown, reading: JsonReading) => T,
): T | undefined {
  const value = memberOf(members, name, reading);
  if (value === undefined) return undefined;
  reading.enter(spellingOf(members, name));
  const result = read(value, reading);
  reading.leave();
  return result;
}

export function textIn(members: Members, name: string, reading: Reading): string | undefined {
  const value = memberOf(members, name, reading);
  if (typeof value === "string") return value === "" ? undefined : value;
  if (value !== undefined) reading.violateMember(spellingOf(members, name), "must be a string");
  return undefined;
}

export function requiredTextIn(members: Members, name: string, reading: Reading): string {
  const before = reading.violations.length;
  const text = textIn(members, name, reading);
  if (text !== undefined) return text;
  if (reading.violations.length === before) {
    const value = memberOf(members, name, reading);
    reading.violateMember(name, value === undefined ? "is required" : "must not be empty");
  }
  return "";
}

export function flagIn(members: Members, name: string, reading: Reading): boolean | undefined {
  const value = memberOf(members, name, reading);
  if (typeof value === "boolean" || value === undefined) return value;
  reading.violateMember(spellingOf(members, name), "must be true or false");
  return undefined;
}

const DECIMAL = /^\d{1,10}$/;
const MAX_LENGTH = 2 ** 31 - 1;

/** How many of something. */
export function lengthIn(members: Members, name: string, reading: Reading): number | undefined {
  const value = memberOf(members, name, reading);
  if (value === undefined) return undefined;
  const number = typeof value === "string" && DECIMAL.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= MAX_LENGTH) return number;
  reading.violateMember(spellingOf(members, name), "must be an integer not below 0");
  return undefined;
}

export function structIn(members: Members, name: string, reading: Reading): JsonObject | undefined {
  const value = memberOf(members, name, reading);
  if (value === undefined) return undefined;
  // The value was parsed from JSON, so that an object is one all the way down.
  if (isObject(value)) return value;
  reading.violateMember(spellingOf(members, name), "must be an object");
  return undefined;
}

export function listIn<T>(
  members: Members,
  name: string,
  reading: JsonReading,
  read: (item: unknown, reading: JsonReading) => T,
): readonly T[] | undefined {
  const items = readMember(members, name, reading, (value) => readList(value, reading, read));
  return items === undefined || items.length === 0 ? undefined : items;
}

export function readList<T>(
  value: unknown,
  reading: JsonReading,
  read: (item: unknown, reading: JsonReading) => T,
): readonly T[] {
  if (!Array.isArray(value)) {
    reading.violate("must be an array");
    return [];
  }
  if (value.length > reading.maxItems) {
    reading.violate(`must not have more than ${reading.maxItems} items`);
    return [];
  }
  const items: T[] = [];
  for (let at = 0; at < value.length; at++) {
    reading.enter(at);
    items.push(read(value[at], reading));
    reading.leave();
  }
  return items;
}

export function textsIn(members: Members, name: string, reading: JsonReading): readonly string[] | undefined {
  return listIn(members, name, reading, readText);
}

function readText(value: unknown, reading: JsonReading): string {
  if (typeof value === "string") return value;
  reading.violate("must be a string");
  return "";
}
