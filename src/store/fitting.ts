/** Pages that are bounded by how much there is to say, not only by how many tasks. */
import type { Task } from "../model/task.ts";

/** The first task in any case, and then as many as fit; `read` is asked for one more at most. */
export function fitting<T>(found: readonly T[], characters: number | undefined, read: (one: T) => Task): Task[] {
  if (characters === undefined) return found.map(read);
  const tasks: Task[] = [];
  let left = characters;
  for (const one of found) {
    const task = read(one);
    left -= roughSize(task);
    if (left < 0 && tasks.length > 0) break;
    tasks.push(task);
  }
  return tasks;
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
