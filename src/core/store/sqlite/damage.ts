/** Where a file is damaged: what can still be done, without what cannot be read. */
import { FoldError } from "../../model/fold.ts";
import { StoreError, type StoreErrorCode } from "../errors.ts";

const STORE_CODES: ReadonlyMap<number, StoreErrorCode> = new Map([
  [8, "read-only"],
  [10, "io"],
  [11, "damaged"],
  [13, "full"],
  // The file, or one beside it, cannot be opened or made.
  [14, "io"],
  [26, "damaged"],
]);
/** Extended codes of SQLITE_IOERR that are about a place in the file: a bad sector, a wrong checksum. */
const DAMAGE_CODES: ReadonlySet<number> = new Set([266, 8202, 8458]);

/** Of SQLite's errors, whichever library they come from; undefined for all others. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("rawCode" in error && typeof error.rawCode === "number") return error.rawCode;
  return "errcode" in error && typeof error.errcode === "number" ? error.errcode : undefined;
}

export function toStoreError(error: unknown, file: string): unknown {
  const code = error instanceof StoreError ? undefined : sqliteCode(error);
  if (code === undefined) return error;
  const { message } = error as Error;
  return new StoreError(storeCode(code), `The task store ${file} could not be used: ${message}`, { cause: error });
}

function storeCode(code: number): StoreErrorCode {
  return DAMAGE_CODES.has(code) ? "damaged" : (STORE_CODES.get(code & 0xff) ?? "unavailable");
}

/** Also of what does not have the form it was written in: a page that was overwritten may hold anything. */
export function isDamage(error: unknown): boolean {
  const known = toStoreError(error, "");
  if (known instanceof StoreError) return known.code === "damaged";
  return [FoldError, RangeError, SyntaxError, TypeError].some((kind) => error instanceof kind);
}

/** The whole at once; where damage stops that, in pieces. */
export function fallBackIfDamaged<T>(whole: () => T, pieces: (error: unknown) => T): T {
  try {
    return whole();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return pieces(error);
  }
}

/** The results for those items that `work` can be done for; the others are reported and left out. */
export function salvage<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Result,
  report: (item: Item, error: unknown) => void,
): Result[] {
  const results: Result[] = [];
  for (const item of items) {
    try {
      results.push(work(item));
    } catch (error) {
      if (!isDamage(error)) throw error;
      report(item, error);
    }
  }
  return results;
}

/** One commit for all; where damage stops that, one for each. Returns those it was done for. */
export function commitAll<Item>(
  items: readonly Item[],
  commit: (some: readonly Item[]) => void,
  report: (item: Item, error: unknown) => void,
): readonly Item[] {
  const done = (some: readonly Item[]) => {
    if (some.length > 0) commit(some);
    return some;
  };
  return fallBackIfDamaged(
    () => done(items),
    () => salvage(items, (item) => done([item]), report).flat(),
  );
}
