/** Where a small durable fact is kept beside tasks. */
interface RecordTarget {
  /** Records of a space are listed and counted together. */
  readonly space: string;
  readonly key: string;
  /** How long it is kept; absent: until it is deleted. */
  readonly ttlMs?: number;
  /** Maximum number of records in the space: the oldest are deleted. */
  readonly keep?: number;
}

/** Small durable facts beside tasks, by space and key, as JSON text. Writes go with the commits of tasks. */
export interface Records {
  record(space: string, key: string): Promise<string | undefined>;
  /** Those of a space in the order of their keys; `after` is the key of the last one of the page before. */
  records(
    space: string,
    query: { readonly after?: string; readonly limit: number },
  ): Promise<readonly { readonly key: string; readonly value: string }[]>;
  /** False: the record is not what `ifValue` names; null stands for no record. */
  put(record: RecordTarget & { readonly value: string; readonly ifValue?: string | null }): Promise<boolean>;
  /** As `put` with what `change` makes of the present value, as often as another writer comes between. Undefined: no change. */
  update(record: RecordTarget, change: (before: string | undefined) => string | undefined): Promise<void>;
  delete(space: string, key: string): Promise<void>;
}
