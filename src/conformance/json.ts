/** Access to untrusted values, without assumptions about their shape. */

import { isObject } from "../model/json.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** The members of an object; empty if the value is not an object. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Copy without undefined members, so that they are not sent. */
export function withoutUndefined(value: Fields): Fields {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}

/** Equality as JSON: the order of members does not matter, that of list items does. */
export function sameJson(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "undefined";
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join()}}`;
}

/** Formats a value for messages, truncated. */
export function show(value: unknown, maxLength = 160): string {
  const text = typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? "nothing");
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}
