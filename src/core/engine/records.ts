import type { RecordPut, RecordWrite, TaskStore, WriteResult } from "../store/contract.ts";

/** Small durable facts beside tasks, by space and key, as JSON text. Writes go with the commits of tasks. */
export interface EngineRecords extends Pick<TaskStore, "record" | "records"> {
  /** False: the record is not what `ifValue` names. */
  put(record: Omit<RecordPut, "kind">): Promise<boolean>;
  /** As `put` with what `change` makes of the present value, as often as another writer comes between. Undefined: no change. */
  update(
    record: Omit<RecordPut, "kind" | "value" | "ifValue">,
    change: (before: string | undefined) => string | undefined,
  ): Promise<void>;
  delete(space: string, key: string): Promise<void>;
}

export function createRecords(store: TaskStore, write: (write: RecordWrite) => Promise<WriteResult>): EngineRecords {
  const put: EngineRecords["put"] = async (record) => (await write({ kind: "record-put", ...record })).ok;
  return {
    record: (space, key) => store.record(space, key),
    records: (space, query) => store.records(space, query),
    put,
    async update(record, change) {
      for (;;) {
        const before = await store.record(record.space, record.key);
        const value = change(before);
        if (value === undefined || (await put({ ...record, value, ifValue: before ?? null }))) return;
      }
    },
    async delete(space, key) {
      await write({ kind: "record-delete", space, key });
    },
  };
}
