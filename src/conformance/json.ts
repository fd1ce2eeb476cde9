/** Looking at values of strangers without believing anything about them. */

import { isObject } from "../model/json.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** The members of an object; none of what is not an object. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The same object without members that are undefined, so that they are not sent. */
export function withoutUndefined(value: Fields): Fields {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}

/** Equal as JSON: the order of members does not matter, that of lists does. */
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

/** A value for people, cut where it gets long. */
export function show(value: unknown, longest = 160): string {
  const text = typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? "nothing");
  return text.length <= longest ? text : `${text.slice(0, longest)}…`;
}
