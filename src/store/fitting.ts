/** Pages that are bounded by how much there is to say, not only by how many tasks. */
import type { Task } from "../model/task.ts";

export interface Fitted {
  readonly tasks: Task[];
  /** How many of those found are on the page, or were left out because they cannot be read. */
  readonly taken: number;
}

/** The first task in any case, and then as many as fit; `read` is asked for one more at most. */
export function fitting<T>(
  found: readonly T[],
  characters: number | undefined,
  read: (one: T) => Task | undefined,
): Fitted {
  const tasks: Task[] = [];
  let left = characters;
  for (const [index, one] of found.entries()) {
    const task = read(one);
    if (task === undefined) continue;
    if (left !== undefined) left -= roughSize(task);
    if (left !== undefined && left < 0 && tasks.length > 0) return { tasks, taken: index };
    tasks.push(task);
  }
  return { tasks, taken: found.length };
}

/** Characters of the names and values; less than their JSON has, which costs as much to make as the answer itself. */
function roughSize(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return SCALAR;
  let size = 0;
  if (Array.isArray(value)) for (const item of value) size += roughSize(item);
  else for (const name in value) size += name.length + roughSize(Reflect.get(value, name));
  return size;
}

const SCALAR = 4;
