/** Parsers of flag values. An invalid value is a usage error that names the flag. */

import { parseDuration } from "../model/duration.ts";
import { canParseUrl } from "../model/url.ts";
import { usageError } from "./errors.ts";

export function readNumber(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= min && value <= max) return value;
  throw usageError(`${flag} must be a number from ${min} to ${max}, not "${text}".`);
}

/** `others` names further values that the caller accepts. */
export function readInteger(flag: string, text: string, min = 0, max = 999_999_999, others = ""): number {
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= min && value <= max) return value;
  throw usageError(`${flag} must be a whole number from ${min} to ${max}${others}, not "${text}".`);
}

export function readPort(flag: string, text: string, others = ""): number {
  return readInteger(flag, text, 0, 65_535, others);
}

export function readDuration(flag: string, text: string, min = 1): number {
  const milliseconds = parseDuration(text, { typed: true });
  if (milliseconds !== undefined && milliseconds >= min) return milliseconds;
  throw usageError(`${flag} must be a duration such as 500ms, 30s or 5m, not "${text}".`);
}

export function readChoice<T extends string>(flag: string, text: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw usageError(`${flag} must be one of ${choices.join(", ")}, not "${text}".`);
}

export function readHttpUrl(flag: string, text: string): URL {
  if (/^https?:\/\//i.test(text) && canParseUrl(text)) return new URL(text);
  throw usageError(`${flag} must be an http or https URL, not "${text}".`);
}

export function ifGiven<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text);
}
