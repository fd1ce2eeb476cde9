import { isObject } from "../model/json.ts";

/** What is wrong with something that was read; the message names the member. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

/** Values of strangers, looked at without believing anything about them. */

export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Undefined for what is no JSON object. */
export function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
