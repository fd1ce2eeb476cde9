import type {
  OwnedPushConfig,
  PushConfigList,
  PushConfigQuery,
  PushRegistration,
  StoredPushConfig,
} from "../contract.ts";
import type { TaskRecord } from "./task-record.ts";

interface Placed {
  readonly place: number;
  readonly config: StoredPushConfig;
}

/**
 * The push configs of all tasks. Apart from the tasks, because most have none and should not pay for a member; held
 * weakly, so that they go with their task.
 */
export class PushConfigs {
  /** By id, in the order of creation: replacing a value keeps its place in a map. */
  readonly #byTask = new WeakMap<TaskRecord, Map<string, Placed>>();
  #lastPlace = 0;

  put(record: TaskRecord, registered: PushRegistration, createdAt: number, cursor: number): void {
    const known = this.#byTask.get(record);
    const configs = known ?? new Map<string, Placed>();
    if (known === undefined) this.#byTask.set(record, configs);
    const earlier = configs.get(registered.id);
    configs.set(registered.id, {
      place: earlier?.place ?? ++this.#lastPlace,
      config: {
        ...registered,
        taskId: record.id,
        createdAt: earlier?.config.createdAt ?? createdAt,
        cursor: earlier?.config.cursor ?? cursor,
      },
    });
  }

  delete(record: TaskRecord, configId: string): void {
    this.#byTask.get(record)?.delete(configId);
  }

  get(record: TaskRecord | undefined, configId: string): OwnedPushConfig | undefined {
    if (record === undefined) return undefined;
    const found = this.#byTask.get(record)?.get(configId);
    return found === undefined ? undefined : { config: found.config, scope: record.scope };
  }

  list(record: TaskRecord | undefined, { after = 0, limit }: PushConfigQuery): PushConfigList | undefined {
    if (record === undefined) return undefined;
    const following: Placed[] = [];
    for (const placed of this.#byTask.get(record)?.values() ?? []) {
      if (placed.place > after && following.push(placed) > limit) break;
    }
    const shown = following.slice(0, limit);
    const last = shown.at(-1);
    return {
      configs: shown.map(({ config }) => config),
      ...(following.length > shown.length && last !== undefined ? { next: last.place } : undefined),
      scope: record.scope,
    };
  }
}
