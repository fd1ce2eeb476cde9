import type { Records } from "../model/records.ts";
import type { RecordWrite, TaskStore, WriteResult } from "../store/contract.ts";

export function createRecords(store: TaskStore, write: (write: RecordWrite) => Promise<WriteResult>): Records {
  const put: Records["put"] = async (record) => (await write({ kind: "record-put", ...record })).ok;
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
