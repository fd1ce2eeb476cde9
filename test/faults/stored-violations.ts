/** Whether the store has what callers were told, and nothing else. */
import { logViolations, snapshotViolations } from "../../src/core/engine/testing/log-invariants.ts";
import type { LogEntry } from "../../src/core/model/event.ts";
import { textOf } from "../../src/core/model/message.ts";
import type { Task } from "../../src/core/model/task.ts";
import type { TaskStore } from "../../src/core/store/contract.ts";
import { CRASH_REASON, wholeText } from "./agents.ts";
import type { Follower } from "./client.ts";

export async function storedViolations(store: TaskStore, follower: Follower): Promise<string[]> {
  const id = follower.id ?? "";
  const [read] = await store.read([{ id, after: 0 }], Number.MAX_SAFE_INTEGER);
  const snapshot = await store.snapshot(id, { history: Number.MAX_SAFE_INTEGER, artifacts: true });
  if (read?.kind !== "entries" || snapshot === undefined) return [`${id} of ${follower.agent} is gone`];
  const { entries } = read;
  const found = [
    ...logViolations(entries, { ended: true }),
    ...snapshotViolations(entries, snapshot.task),
    ...acknowledgedViolations(follower, entries),
    ...outcomeViolations(follower, snapshot.task),
  ];
  return found.map((violation) => `${id} of ${follower.agent}: ${violation}`);
}

function acknowledgedViolations({ seen }: Follower, entries: readonly LogEntry[]): string[] {
  const found: string[] = [];
  for (const [number, json] of seen) {
    const stored = entries[number - 1]?.json;
    if (stored !== json) found.push(`event ${number} was told as ${json} and is stored as ${stored}`);
  }
  const unseen = entries.filter(({ number }) => number > 1 && !seen.has(number));
  if (unseen.length > 0) found.push(`${unseen.length} events were never told`);
  return found;
}

function outcomeViolations(follower: Follower, task: Task): string[] {
  const { state, message } = task.status;
  const text = textOf(task.artifacts?.[0]?.parts ?? []);
  const whole = wholeText(follower.steps);
  if (state === "TASK_STATE_COMPLETED") return text === whole ? [] : [`counted ${text}, not ${whole}`];
  if (follower.agent !== "fragile") return [`ended as ${state}: ${JSON.stringify(message)}`];
  if (state !== "TASK_STATE_FAILED" || !CRASH_REASON.test(textOf(message?.parts ?? []))) {
    return [`ended as ${state} without a clear reason: ${JSON.stringify(message)}`];
  }
  return whole.startsWith(text) ? [] : [`counted ${text}, which is no beginning of ${whole}`];
}
