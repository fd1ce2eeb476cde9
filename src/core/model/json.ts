export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | readonly JsonValue[] | JsonObject;
/** A member that is undefined is absent: it is not written, counted or signed, as with `JSON.stringify`. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

/** For what was parsed from JSON: an object there is one all the way down. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value while it is being built. */
export type Writable<T> = { -readonly [Member in keyof T]: T[Member] };

type Defined<T> = {
  readonly [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name];
} & {
  readonly [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>;
};

/** The members that are not undefined. Not written with `...rest`, which takes several times as long. */
export function omitUndefined<T extends object>(members: T): Defined<T> {
  const defined: Record<string, unknown> = {};
  for (const name in members) if (members[name] !== undefined) defined[name] = members[name];
  return defined as Defined<T>;
}

/** Members of a value whose shape is not known. */
export type Fields = Readonly<Record<string, unknown>>;

/** The members of an object; empty if the value is not an object. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** The items of an array; empty if the value is not an array. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
