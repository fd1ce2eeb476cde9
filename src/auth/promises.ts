/** Checks that need no waiting are not made to wait, so results are looked at before they are awaited. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
