/**
 * Reads the JSON of dialects older than 1.0, member by member and into the model at once: either spelling of names,
 * `null` for absent, unknown members ignored, every violation with its path.
 */

import { type ErrorCode, type FieldViolation, ProtocolError } from "../../../model/errors.ts";
import { isObject, type JsonObject, type JsonValue } from "../../../model/json.ts";
import { type LossRule, type Lossy, toLoss } from "../../../model/loss.ts";
import { snakeCase } from "../proto/json-codec.ts";
import { Reading, type ReadOptions, SCALARS } from "../proto/json-reading.ts";

class LegacyReading extends Reading {
  readonly losses: ReturnType<typeof toLoss>[] = [];

  constructor(options: ReadOptions) {
    super(options, false);
  }

  lose(rule: LossRule): void {
    this.losses.push(toLoss(rule, this.where()));
  }
}

/** One object. What does not fit is a violation, and what is returned for it is moot: the reading fails as a whole. */
export class Members {
  readonly reading: LegacyReading;
  readonly #value: Readonly<Record<string, unknown>>;

  private constructor(value: Readonly<Record<string, unknown>>, reading: LegacyReading) {
    this.#value = value;
    this.reading = reading;
  }

  static of(value: unknown, reading: LegacyReading): Members {
    if (isObject(value)) return new Members(value, reading);
    reading.violate("must be an object");
    return Members.#none();
  }

  /** What is missing in an object that is not there need not be told. */
  static #none(): Members {
    return new Members({}, new LegacyReading({}));
  }

  /** Undefined for what is absent or `null`. */
  raw(name: string): unknown {
    const given = this.#value[name] ?? undefined;
    return given === undefined ? (this.#value[snakeCaseOf(name)] ?? undefined) : given;
  }

  /** The member is there, be it with `null` in it. */
  has(name: string): boolean {
    return this.#value[name] !== undefined;
  }

  violate(description: string): void {
    this.reading.violate(description);
  }

  read<T>(name: string, read: (value: unknown, reading: LegacyReading) => T): T | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    this.reading.enter(name);
    const result = read(value, this.reading);
    this.reading.leave();
    return result;
  }

  object<T>(name: string, read: (members: Members) => T): T | undefined {
    return this.read(name, (value, reading) => read(Members.of(value, reading)));
  }

  /** Like `object`, but it must be there. */
  requiredObject<T>(name: string, read: (members: Members) => T): T {
    if (this.raw(name) === undefined) this.reading.violateMember(name, "is required");
    return this.object(name, read) ?? read(Members.#none());
  }

  list<T>(name: string, read: (members: Members) => T): T[] | undefined {
    return this.read(name, (value, reading) => {
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
        const result = read(Members.of(item, reading));
        reading.leave();
        return result;
      });
    });
  }

  /** Must have items, except in the answers of others. */
  requiredList<T>(name: string, read: (members: Members) => T): T[] {
    const items = this.list(name, read);
    if (!this.reading.tolerant && (items === undefined || (items.length === 0 && isEmptyArray(this.raw(name))))) {
      this.reading.violateMember(name, items === undefined ? "is required" : "must not be empty");
    }
    return items ?? [];
  }

  /** Empty text is as good as none. */
  text(name: string): string | undefined {
    const text = this.anyText(name);
    return text === "" ? undefined : text;
  }

  anyText(name: string): string | undefined {
    return this.read(name, (value, reading) => {
      if (typeof value === "string") return value;
      reading.violate("must be a string");
      return "";
    });
  }

  requiredText(name: string): string {
    const text = this.anyText(name);
    if (text === undefined) this.reading.violateMember(name, "is required");
    else if (text === "" && this.raw(name) === "") this.reading.violateMember(name, "must not be empty");
    return text ?? "";
  }

  texts(name: string): string[] | undefined {
    return this.read(name, (value, reading) => {
      if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value as string[];
      reading.violate("must be an array of strings");
      return [];
    });
  }

  flag(name: string): boolean | undefined {
    return this.read(name, (value, reading) => {
      if (typeof value !== "boolean") reading.violate("must be true or false");
      return value === true;
    });
  }

  /** How many of something: never negative. */
  count(name: string): number | undefined {
    return this.read(name, (value, reading) => SCALARS.length.read(value, reading) as number);
  }

  bytes(name: string): string | undefined {
    return this.read(name, (value, reading) => SCALARS.bytes.read(value, reading) as string);
  }

  struct(name: string): JsonObject | undefined {
    return this.read(name, (value, reading) => {
      if (isObject(value)) return value;
      reading.violate("must be an object");
      return {};
    });
  }

  /** Any value, `null` included. */
  json(name: string): JsonValue {
    return (this.#value[name] ?? null) as JsonValue;
  }
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

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Reads a whole request. Throws a ProtocolError that names every member that does not fit. */
export function readRequest<T>(value: unknown, options: ReadOptions, read: (members: Members) => T): Lossy<T> {
  const reading = new LegacyReading(options);
  const result = read(Members.of(value, reading));
  if (reading.violations.length > 0) throw validationError("INVALID_PARAMS", "", reading.violations);
  return { value: result, losses: reading.losses };
}

/** Reads what a peer answered, with good will. */
export function readResponse<T>(value: unknown, read: (members: Members) => T): Lossy<T> {
  const reading = new LegacyReading(TOLERANT);
  const result = read(Members.of(value, reading));
  if (reading.violations.length > 0) {
    throw validationError("INVALID_AGENT_RESPONSE", "The agent's answer cannot be read: ", reading.violations);
  }
  return { value: result, losses: reading.losses };
}

const TOLERANT: ReadOptions = { tolerant: true };

function validationError(code: ErrorCode, introduction: string, violations: readonly FieldViolation[]): ProtocolError {
  const [first] = violations as readonly [FieldViolation];
  const where = first.field === "" ? "the value" : first.field;
  const more = violations.length === 1 ? "" : ` (and ${violations.length - 1} more)`;
  return new ProtocolError(code, `${introduction}${where} ${first.description}${more}`, { violations });
}
