/** What one pass of reading keeps, and what the reader of a type is. */
import type { ErrorCode, FieldViolation } from "../../model/errors.ts";

export interface ReadOptions {
  /** Longest list accepted. */
  readonly maxItems?: number;
  /** Values come from a query string: booleans, numbers and enum numbers are text. */
  readonly textual?: boolean;
  /** A required list may be empty or left out, as in the answers of careless servers. */
  readonly tolerant?: boolean;
  /** The code of the error thrown for what does not fit. INVALID_PARAMS by default. */
  readonly code?: ErrorCode;
  /** What the violations' paths start with. */
  readonly root?: string;
}

/** Enough to mend a request by; keeps the answer to a hostile one small. */
const MAX_VIOLATIONS = 50;

/** One pass over one value. */
export class Reading {
  readonly maxItems: number;
  readonly textual: boolean;
  readonly tolerant: boolean;
  readonly violations: FieldViolation[] = [];
  readonly #path: (string | number)[];
  #depth: number;

  /** The value is ours and on its way out. */
  readonly writing: boolean;

  constructor(options: ReadOptions, writing: boolean) {
    this.writing = writing;
    this.maxItems = options.maxItems ?? Number.POSITIVE_INFINITY;
    this.textual = options.textual ?? false;
    this.tolerant = options.tolerant ?? false;
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

  /** Path of what is being read. */
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

export interface TypeReader {
  /** The value in its final form. What does not fit is reported to the reading, and what is returned then is moot. */
  readonly read: (value: unknown, reading: Reading) => unknown;
  /** Of a value that was read. */
  readonly isEmpty: (value: unknown) => boolean;
  readonly empty: () => unknown;
  /** `null` is a value, not an absence. */
  readonly nullable?: boolean;
  readonly list?: boolean;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
