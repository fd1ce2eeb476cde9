/** One pass over a value of proto JSON, and the readers of its scalar types. */

import { type ErrorCode, type FieldViolation, ProtocolError } from "../../../model/errors.ts";
import { isObject } from "../../../model/json.ts";
import { type Loss, type LossRule, toLoss } from "../../../model/loss.ts";
import { RESPONSE_LOSSES } from "../responses.ts";

export interface ReadOptions {
  /** Maximum list length. */
  readonly maxItems?: number;
  /** Values come from a query string: booleans, numbers and enum numbers are strings. */
  readonly textual?: boolean;
  /** Required lists may be empty or absent, as in responses of some servers. */
  readonly tolerant?: boolean;
  /**
   * For responses of peers, implies `tolerant`: what is missing, unknown or unreadable is filled in or dropped where the
   * rest can be read without it.
   */
  readonly lenient?: boolean;
  /** Gets what was filled in or dropped. */
  readonly losses?: Loss[];
  /** Error code for an invalid value. Default: INVALID_PARAMS. */
  readonly code?: ErrorCode;
  /** Prefix of the violations' paths. */
  readonly root?: string;
}

/** Enough to fix a request; limits the size of the response to a hostile one. */
const MAX_VIOLATIONS = 50;
const MAX_SHOWN_VALUE = 64;

/** One pass over one value. */
export class Reading {
  readonly maxItems: number;
  readonly textual: boolean;
  readonly tolerant: boolean;
  readonly violations: FieldViolation[] = [];
  readonly lenient: boolean;
  readonly losses: Loss[];
  readonly #path: (string | number)[];
  #depth: number;

  /** The value is our own and is being encoded. */
  readonly writing: boolean;

  constructor(options: ReadOptions, writing: boolean) {
    this.writing = writing;
    this.maxItems = options.maxItems ?? Number.POSITIVE_INFINITY;
    this.textual = options.textual ?? false;
    this.lenient = options.lenient ?? false;
    this.tolerant = this.lenient || (options.tolerant ?? false);
    this.losses = options.losses ?? [];
    this.#path = options.root === undefined ? [] : [options.root];
    this.#depth = this.#path.length;
  }

  enter(step: string | number): void {
    this.#path[this.#depth++] = step;
  }

  leave(): void {
    this.#depth--;
  }

  violate(description: string): void {
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push({ field: this.where(), description });
  }

  violateMember(name: string, description: string): void {
    this.enter(name);
    this.violate(description);
    this.leave();
  }

  /** Whether what is missing may be filled in, which is reported. `name`: of a member; else the value being read. */
  fills(name = ""): boolean {
    if (this.lenient) this.lose(RESPONSE_LOSSES.missing, name);
    return this.lenient;
  }

  /** Whether a value that is not known may be replaced, which is reported with the value. */
  replaces(given: unknown, name = ""): boolean {
    if (this.lenient)
      this.lose(RESPONSE_LOSSES.unknown, name, ` (${JSON.stringify(given)?.slice(0, MAX_SHOWN_VALUE)})`);
    return this.lenient;
  }

  /** Whether the value just read, which added violations to the first `before`, may be dropped instead. */
  forgives(before: number): boolean {
    if (!this.lenient) return false;
    this.violations.length = before;
    this.lose(RESPONSE_LOSSES.unreadable);
    return true;
  }

  /** `path` is relative to the current position. */
  lose(rule: LossRule, path = "", remark = ""): void {
    if (this.losses.length >= MAX_VIOLATIONS) return;
    const where = this.where();
    this.losses.push(toLoss(rule, (where === "" || path === "" ? where + path : `${where}.${path}`) + remark));
  }

  /** Position in the innermost list; 0 if the value is not in one. */
  get index(): number {
    const step = this.#path[this.#depth - 1];
    return typeof step === "number" ? step : 0;
  }

  /** Path of the value being read. */
  where(): string {
    let where = "";
    for (let at = 0; at < this.#depth; at++) {
      const step = this.#path[at] as string | number;
      if (typeof step === "number") where += `[${step}]`;
      else where += where === "" ? step : `.${step}`;
    }
    return where;
  }
}

/** The message names the first violation; the details list all. */
export function validationError(
  violations: readonly FieldViolation[],
  code: ErrorCode = "INVALID_PARAMS",
): ProtocolError {
  const [first] = violations as readonly [FieldViolation];
  const where = first.field === "" ? "the value" : first.field;
  const more = violations.length === 1 ? "" : ` (and ${violations.length - 1} more)`;
  return new ProtocolError(code, `${where} ${first.description}${more}`, { violations });
}

export interface TypeReader {
  /** Returns the canonical value. An invalid value is reported to the reading, and the result is then meaningless. */
  readonly read: (value: unknown, reading: Reading) => unknown;
  /** For a value that has been read. */
  readonly isEmpty: (value: unknown) => boolean;
  readonly empty: () => unknown;
  /** Stands for a required value that a peer left out. Absent: the message cannot be read without it. */
  readonly fill?: () => unknown;
  /** `null` is a value, not absent. */
  readonly nullable?: boolean;
  readonly list?: boolean;
}

export type ScalarName =
  | "string"
  | "bool"
  | "int32"
  | "length"
  | "pageSize"
  | "bytes"
  | "timestamp"
  | "struct"
  | "value";

const string: TypeReader = {
  read(value, reading) {
    if (typeof value !== "string") reading.violate("must be a string");
    return value;
  },
  isEmpty: (value) => value === "",
  empty: () => "",
  fill: () => "",
};

const bool: TypeReader = {
  read(value, reading) {
    if (typeof value === "boolean") return value;
    if (reading.textual && (value === "true" || value === "false")) return value === "true";
    reading.violate("must be true or false");
    return value;
  },
  isEmpty: (value) => value === false,
  empty: () => false,
};

const DECIMAL = /^-?\d{1,10}$/;
const INT32_MAX = 2 ** 31 - 1;
const INT32_MIN = -(2 ** 31);

function integer(min: number, max: number, description: string): TypeReader {
  return {
    read(value, reading) {
      const number = typeof value === "string" && DECIMAL.test(value) ? Number(value) : value;
      if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max) return number;
      reading.violate(description);
      return value;
    },
    isEmpty: (value) => value === 0,
    empty: () => 0,
  };
}

// Matching invalid characters needs no backtracking, whatever the length of the string.
const NOT_STANDARD = /[^A-Za-z0-9+/]/;

/** Normalises to the standard alphabet with padding; undefined if the value is not base64 in any variant. */
export function toStandardBase64(text: string): string | undefined {
  const end = text.search(NOT_STANDARD);
  if (text.length % 4 === 0 && (end === -1 || isPadding(text, end))) return text;
  const bare = text
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replace(/={1,2}$/, "");
  const over = bare.length % 4;
  const padded = bare.length < text.length;
  if (over === 1 || (padded && over === 0) || NOT_STANDARD.test(bare)) return undefined;
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, "=");
}

function isPadding(text: string, from: number): boolean {
  return (from === text.length - 1 || (from === text.length - 2 && text[from + 1] === "=")) && text[from] === "=";
}

const bytes: TypeReader = {
  read(value, reading) {
    const standard = typeof value === "string" ? toStandardBase64(value) : undefined;
    if (standard === undefined) reading.violate("must be base64");
    return standard ?? value;
  },
  isEmpty: (value) => value === "",
  empty: () => "",
};

const FINAL_TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const ANY_TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** Some servers omit the time zone of UTC timestamps. */
const WITHOUT_ZONE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?$/;

function timestamp(accepted: RegExp, description: string): TypeReader {
  return {
    read(value, reading) {
      const text = reading.tolerant && typeof value === "string" && WITHOUT_ZONE.test(value) ? `${value}Z` : value;
      const instant = typeof text === "string" && accepted.test(text) ? Date.parse(text) : Number.NaN;
      if (typeof text !== "string" || Number.isNaN(instant)) {
        reading.violate(description);
        return value;
      }
      return FINAL_TIMESTAMP.test(text) ? text : new Date(instant).toISOString();
    },
    isEmpty: (value) => value === "",
    empty: () => "",
  };
}

const struct: TypeReader = {
  read(value, reading) {
    if (!isObject(value)) reading.violate("must be an object");
    return value;
  },
  isEmpty: () => false,
  empty: () => ({}),
};

const value: TypeReader = {
  read: (given) => given,
  isEmpty: () => false,
  empty: () => null,
  nullable: true,
};

export const SCALARS = {
  string,
  bool,
  int32: integer(INT32_MIN, INT32_MAX, "must be a 32-bit integer"),
  /** A non-negative count. */
  length: integer(0, INT32_MAX, "must be an integer not below 0"),
  pageSize: integer(1, 100, "must be an integer from 1 to 100"),
  bytes,
  /** Normalised to UTC with milliseconds. */
  timestamp: timestamp(ANY_TIMESTAMP, "must be an ISO 8601 timestamp"),
  struct,
  value,
} satisfies Record<ScalarName, TypeReader>;
