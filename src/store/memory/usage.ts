import type { TaskRecord } from "./task-record.ts";

interface OwnerUsage {
  bytes: number;
  tasks: number;
  /** Tasks that changed since they were counted. */
  readonly changed: Set<TaskRecord>;
}

/**
 * What owners' tasks take up. Counting makes text of events, which nobody else may ever need here: so nothing is kept
 * before somebody asks for the first time, and then only what has come since the last question is counted.
 */
export class Usage {
  #owners: Map<string, OwnerUsage> | undefined;

  added(record: TaskRecord): void {
    if (this.#owners !== undefined) add(this.#owners, record);
  }

  changed(record: TaskRecord): void {
    this.#owners?.get(record.scope.owner)?.changed.add(record);
  }

  removed(record: TaskRecord): void {
    const { owner } = record.scope;
    const usage = this.#owners?.get(owner);
    if (usage === undefined) return;
    usage.changed.delete(record);
    usage.bytes -= record.bytes;
    usage.tasks--;
    if (usage.tasks === 0) this.#owners?.delete(owner);
  }

  /** `tasks` are all there are. */
  of(owner: string, tasks: Iterable<TaskRecord>): number {
    if (this.#owners === undefined) {
      this.#owners = new Map();
      for (const record of tasks) add(this.#owners, record);
    }
    const usage = this.#owners.get(owner);
    if (usage === undefined) return 0;
    for (const record of usage.changed) {
      usage.bytes -= record.bytes;
      record.count();
      usage.bytes += record.bytes;
    }
    usage.changed.clear();
    return usage.bytes;
  }
}

function add(owners: Map<string, OwnerUsage>, record: TaskRecord): void {
  const { owner } = record.scope;
  let usage = owners.get(owner);
  if (usage === undefined) {
    usage = { bytes: 0, tasks: 0, changed: new Set() };
    owners.set(owner, usage);
  }
  usage.tasks++;
  usage.changed.add(record);
}
