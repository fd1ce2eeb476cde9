import type { LogEntry } from "../../model/event.ts";
import { fold } from "../../model/fold.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { isTerminal, type Task } from "../../model/task.ts";

/** What is wrong with a task's log. */
export function logViolations(entries: readonly LogEntry[], options: { readonly ended?: boolean } = {}): string[] {
  const found: string[] = [];
  entries.forEach((entry, index) => {
    if (entry.number !== index + 1) found.push(`entry ${index + 1} has the number ${entry.number}`);
    if ("task" in entry.event !== (index === 0)) found.push(`entry ${entry.number}: a log has one task, at its start`);
  });
  const ends = entries.filter(({ state }) => state !== undefined && isTerminal(state));
  if (ends.length > 1) found.push(`${ends.length} terminal events`);
  if (options.ended === true && ends.length === 0) found.push("no terminal event");
  if (ends.length > 0 && ends[0] !== entries.at(-1)) found.push("something follows the terminal event");
  return found;
}

/** The stored task is what its log says, history and artifacts included. */
export function snapshotViolations(entries: readonly LogEntry[], snapshot: Task): string[] {
  const folded = JSON.stringify(fold(entries).toTask());
  const stored = JSON.stringify(snapshot);
  return folded === stored ? [] : [`the log folds to ${folded}, stored is ${stored}`];
}

/** What is wrong with what one subscriber saw: each number once, in order, without gaps, with the log's content. */
export function viewViolations(frames: readonly StreamFrame[], entries: readonly LogEntry[], after: number): string[] {
  const found: string[] = [];
  let next = after + 1;
  for (const { number, json } of frames) {
    if (number !== next) found.push(`number ${number} where ${next} was due`);
    const written = entries[(number ?? 0) - 1];
    if (written !== undefined && written.json !== json) found.push(`number ${number} differs from the log`);
    next = (number ?? next) + 1;
  }
  return found;
}
