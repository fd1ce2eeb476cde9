type Present<T> = { readonly [Member in keyof T]?: Exclude<T[Member], undefined> };

/** Without the members that are undefined: optional members of the model may be absent, but not undefined. */
export function omitUndefined<T extends object>(members: T): Present<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Present<T>;
}
