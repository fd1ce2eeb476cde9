/**
 * Reads the JSON of dialects older than 1.0, member by member and into the model at once: either spelling of names,
 * `null` for absent, unknown members ignored, every violation with its path as the peer spells it.
 */

import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { type Loss, type LossRule, type Lossy, toLoss } from "../../model/loss.ts";
import { snakeCase } from "./proto/json-codec.ts";
import { Reading, type ReadOptions, SCALARS, validationError } from "./proto/json-reading.ts";
import { asResponse } from "./responses.ts";

interface MemberOptions extends ReadOptions {
  /** A member that is there in both spellings is a violation; else the one in camelCase counts. */
  readonly oneSpelling?: boolean;
}

class MemberReading extends Reading {
  readonly oneSpelling: boolean;
  readonly losses: Loss[] = [];

  constructor(options: MemberOptions) {
    super(options, false);
    this.oneSpelling = options.oneSpelling ?? false;
  }

  /** `path` leads on from what is being read. */
  lose(rule: LossRule, path = ""): void {
    const where = this.where();
    this.losses.push(toLoss(rule, where === "" || path === "" ? where + path : `${where}.${path}`));
  }
}

/** One object. What does not fit is a violation, and what is returned for it is moot: the reading fails as a whole. */
export class Members {
  readonly reading: MemberReading;
  readonly #value: JsonObject;

  private constructor(value: JsonObject, reading: MemberReading) {
    this.#value = value;
    this.reading = reading;
  }

  static of(value: unknown, reading: MemberReading): Members {
    if (isObject(value)) return new Members(value, reading);
    reading.violate("must be an object");
    return Members.#none();
  }

  /** What is missing in an object that is not there is not reported. */
  static #none(): Members {
    return new Members({}, new MemberReading({}));
  }

  /** Undefined for what is absent or `null`. */
  raw(name: string): JsonValue | undefined {
    const given = this.#value[name] ?? undefined;
    if (given !== undefined && !this.reading.oneSpelling) return given;
    const snake = snakeCaseOf(name);
    if (snake === name) return given;
    const other = this.#value[snake] ?? undefined;
    if (given === undefined) return other;
    if (other !== undefined) this.reading.violateMember(snake, "is given in both spellings");
    return given;
  }

  /** The member is there, be it with `null` in it. */
  has(name: string): boolean {
    return this.#value[name] !== undefined;
  }

  violate(description: string): void {
    this.reading.violate(description);
  }

  /** Of a member that is there, with its name as it is spelled. */
  violateMember(name: string, description: string): void {
    this.reading.violateMember(this.#spellingOf(name), description);
  }

  #spellingOf(name: string): string {
    const snake = snakeCaseOf(name);
    return (this.#value[name] ?? undefined) === undefined && this.#value[snake] !== undefined ? snake : name;
  }

  read<T>(name: string, read: (value: JsonValue, reading: MemberReading) => T): T | undefined {
    const value = this.raw(name);
    return value === undefined ? undefined : this.#enter(name, value, read);
  }

  #enter<V, T>(name: string, value: V, read: (value: V, reading: MemberReading) => T): T {
    this.reading.enter(this.#spellingOf(name));
    const result = read(value, this.reading);
    this.reading.leave();
    return result;
  }

  object<T>(name: string, read: (members: Members) => T): T | undefined {
    return this.read(name, readObject(read));
  }

  /** Like `object`, but it must be there. */
  requiredObject<T>(name: string, read: (members: Members) => T): T {
    const value = this.raw(name);
    if (value !== undefined) return this.#enter(name, value, readObject(read));
    this.reading.violateMember(name, "is required");
    return read(Members.#none());
  }

  /** An empty list is as good as none. */
  list<T>(name: string, read: (members: Members) => T): T[] | undefined {
    const items = this.read(name, (value, reading) => readItems(value, reading, readObject(read)));
    return items?.length === 0 ? undefined : items;
  }

  /** Must have items, except in the answers of others. */
  requiredList<T>(name: string, read: (members: Members) => T): T[] {
    const value = this.raw(name);
    if (!this.reading.tolerant && (value === undefined || (Array.isArray(value) && value.length === 0))) {
      this.reading.violateMember(name, value === undefined ? "is required" : "must not be empty");
    }
    if (value === undefined) return [];
    return this.#enter(name, value, (given, reading) => readItems(given, reading, readObject(read)));
  }

  texts(name: string): string[] | undefined {
    const items = this.read(name, (value, reading) => readItems(value, reading, readText));
    return items?.length === 0 ? undefined : items;
  }

  /** Empty text is as good as none. */
  text(name: string): string | undefined {
    return this.anyText(name) || undefined;
  }

  anyText(name: string): string | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === "string") return value;
    this.violateMember(name, "must be a string");
    return "";
  }

  requiredText(name: string): string {
    const value = this.raw(name);
    if (typeof value === "string" && value !== "") return value;
    if (value === undefined) this.reading.violateMember(name, "is required");
    else this.violateMember(name, value === "" ? "must not be empty" : "must be a string");
    return "";
  }

  flag(name: string): boolean | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === "boolean") return value;
    this.violateMember(name, "must be true or false");
    return false;
  }

  /** How many of something: never negative. */
  count(name: string): number | undefined {
    return this.read(name, (value, reading) => SCALARS.length.read(value, reading) as number);
  }

  bytes(name: string): string | undefined {
    return this.read(name, (value, reading) => SCALARS.bytes.read(value, reading) as string);
  }

  struct(name: string): JsonObject | undefined {
    const value = this.raw(name);
    if (value === undefined || isObject(value)) return value;
    this.violateMember(name, "must be an object");
    return {};
  }

  /** Any value, `null` included. */
  json(name: string): JsonValue {
    return this.#value[name] ?? null;
  }
}

type ReadItem<T> = (value: unknown, reading: MemberReading) => T;

function readItems<T>(value: unknown, reading: MemberReading, read: ReadItem<T>): T[] {
  if (!Array.isArray(value)) {
    reading.violate("must be an array");
    return [];
  }
  if (value.length > reading.maxItems) {
    reading.violate(`must not have more than ${reading.maxItems} items`);
    return [];
  }
  return value.map((item: unknown, at) => {
    reading.enter(at);
    const result = read(item, reading);
    reading.leave();
    return result;
  });
}

function readObject<T>(read: (members: Members) => T): ReadItem<T> {
  return (value, reading) => read(Members.of(value, reading));
}

function readText(value: unknown, reading: MemberReading): string {
  if (typeof value === "string") return value;
  reading.violate("must be a string");
  return "";
}

const snakeCaseNames = new Map<string, string>();

function snakeCaseOf(name: string): string {
  let spelling = snakeCaseNames.get(name);
  if (spelling === undefined) {
    spelling = snakeCase(name);
    snakeCaseNames.set(name, spelling);
  }
  return spelling;
}

/** Reads a whole request. Throws a ProtocolError that names every member that does not fit. */
export function readRequest<T>(value: unknown, options: MemberOptions, read: (members: Members) => T): Lossy<T> {
  const reading = new MemberReading(options);
  const result = read(Members.of(value, reading));
  if (reading.violations.length > 0) throw validationError(reading.violations);
  return { value: result, losses: reading.losses };
}

const TOLERANT: MemberOptions = { tolerant: true };

/** Reads what a peer answered, with good will. */
export function readResponse<T>(
  value: unknown,
  read: (members: Members) => T,
  options: MemberOptions = TOLERANT,
): Lossy<T> {
  return asResponse(() => readRequest(value, options, read));
}
