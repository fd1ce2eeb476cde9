/** Access to untrusted values, without assumptions about their shape. */

import { type Fields, isObject } from "../../../core/model/json.ts";

/** A value that could not be decoded; the message names the member. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Undefined if the text is not a JSON object. */
export function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
