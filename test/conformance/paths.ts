/** Looking into values of any shape, and changing them, by paths such as `result.task.id` or `history.0.parts`. */

type Container = Record<string, unknown>;

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

export function get(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((found, name) => (isContainer(found) ? found[name] : undefined), value);
}

/** Does nothing where there is no such place. */
export function set(value: unknown, path: string, to: unknown): void {
  const names = path.split(".");
  const last = names.pop() ?? "";
  const holder = names.length === 0 ? value : get(value, names.join("."));
  if (isContainer(holder)) holder[last] = to;
}

export function drop(value: unknown, path: string): void {
  const names = path.split(".");
  const last = names.pop() ?? "";
  const holder = names.length === 0 ? value : get(value, names.join("."));
  if (isContainer(holder)) delete holder[last];
}

export function list(value: unknown, path: string): unknown[] {
  const found = get(value, path);
  return Array.isArray(found) ? found : [];
}
