/**
 * Decodes the JSON of dialects older than 1.0 member by member, directly into the model: either spelling of names,
 * `null` for absent, unknown members ignored, every violation with its path in the peer's spelling.
 */

import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { Lossy } from "../../model/loss.ts";
import { snakeCase } from "./proto/json-codec.ts";
import { Reading, type ReadOptions, SCALARS, validationError } from "./proto/json-reading.ts";
import { asResponse, RESPONSE_LOSSES } from "./responses.ts";

interface MemberOptions extends ReadOptions {
  /** A member present in both spellings is a violation; otherwise the camelCase one is used. */
  readonly oneSpelling?: boolean;
}

class MemberReading extends Reading {
  readonly oneSpelling: boolean;

  constructor(options: MemberOptions) {
    super(options, false);
    this.oneSpelling = options.oneSpelling ?? false;
  }
}

/**
 * One object. An invalid member is a violation, and its returned value is meaningless: the whole reading fails. In the
 * response of a peer an optional one is dropped, with the same as if it were absent.
 */
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

  /** Members of a missing object are not reported as missing. */
  static #none(): Members {
    return new Members({}, new MemberReading({}));
  }

  /** Undefined if absent or `null`. */
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

  /** Whether the member is present, even as `null`. */
  has(name: string): boolean {
    return this.#value[name] !== undefined;
  }

  violate(description: string): void {
    this.reading.violate(description);
  }

  /** For a member that is present, with its name as spelled by the peer. */
  violateMember(name: string, description: string): void {
    this.reading.violateMember(this.#spellingOf(name), description);
  }

  #spellingOf(name: string): string {
    const snake = snakeCaseOf(name);
    return (this.#value[name] ?? undefined) === undefined && this.#value[snake] !== undefined ? snake : name;
  }

  read<T>(name: string, read: (value: JsonValue, reading: MemberReading) => T): T | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    const violations = this.reading.violations.length;
    return this.#enter(name, value, (given, reading) => {
      const result = read(given, reading);
      return reading.violations.length > violations && reading.forgives(violations) ? undefined : result;
    });
  }

  /** A value of the wrong type, for a member that may be absent. */
  #refuse(name: string, description: string): void {
    if (this.reading.lenient) this.reading.lose(RESPONSE_LOSSES.unreadable, this.#spellingOf(name));
    else this.violateMember(name, description);
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

  /** Like `object`, but required. */
  requiredObject<T>(name: string, read: (members: Members) => T): T {
    const value = this.raw(name);
    if (value !== undefined) return this.#enter(name, value, readObject(read));
    this.reading.violateMember(name, "is required");
    return read(Members.#none());
  }

  /** An empty list is equivalent to an absent one. */
  list<T>(name: string, read: (members: Members) => T): T[] | undefined {
    const items = this.read(name, (value, reading) => readItems(value, reading, readObject(read)));
    return items?.length === 0 ? undefined : items;
  }

  /** Must have items, except in responses of peers. */
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

  /** An empty string is equivalent to an absent one. */
  text(name: string): string | undefined {
    return this.anyText(name) || undefined;
  }

  anyText(name: string): string | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === "string") return value;
    this.#refuse(name, "must be a string");
    return undefined;
  }

  /** `create`: what a peer left out, or sent as something else. Default: an empty string. */
  requiredText(name: string, create = () => ""): string {
    const value = this.raw(name);
    if (typeof value === "string" && value !== "") return value;
    if (this.reading.fills(name)) return create();
    if (value === undefined) this.reading.violateMember(name, "is required");
    else this.violateMember(name, value === "" ? "must not be empty" : "must be a string");
    return "";
  }

  flag(name: string): boolean | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === "boolean") return value;
    this.#refuse(name, "must be true or false");
    return undefined;
  }

  /** A non-negative count. */
  count(name: string): number | undefined {
    return this.read(name, (value, reading) => SCALARS.length.read(value, reading) as number);
  }

  bytes(name: string): string | undefined {
    return this.read(name, (value, reading) => SCALARS.bytes.read(value, reading) as string);
  }

  struct(name: string): JsonObject | undefined {
    const value = this.raw(name);
    if (value === undefined || isObject(value)) return value;
    this.#refuse(name, "must be an object");
    return undefined;
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
  const items: T[] = [];
  value.forEach((item: unknown, at) => {
    const violations = reading.violations.length;
    reading.enter(at);
    const result = read(item, reading);
    if (reading.violations.length === violations || !reading.forgives(violations)) items.push(result);
    reading.leave();
  });
  return items;
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

/** Decodes a whole request. Throws a ProtocolError that lists every invalid member. */
export function readRequest<T>(value: unknown, options: MemberOptions, read: (members: Members) => T): Lossy<T> {
  const reading = new MemberReading(options);
  const result = read(Members.of(value, reading));
  if (reading.violations.length > 0) throw validationError(reading.violations);
  return { value: result, losses: reading.losses };
}

const LENIENT: MemberOptions = { lenient: true };

/** Decodes a peer's response leniently. */
export function readResponse<T>(
  value: unknown,
  read: (members: Members) => T,
  options: MemberOptions = LENIENT,
): Lossy<T> {
  return asResponse(() => readRequest(value, options, read));
}
