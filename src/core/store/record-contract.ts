/** Records: small facts that are kept beside tasks. Part of `contract.ts`. */

/**
 * Keep a small fact beside tasks: a login, a device, a cleared conversation. What is put again counts as new. Refused as
 * `position` if the record is not what `ifValue` names.
 */
export interface RecordPut {
  readonly kind: "record-put";
  /** Records of a space are listed and counted together. */
  readonly space: string;
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** How long it is kept; absent: until it is deleted. */
  readonly ttlMs?: number;
  /** Records that the space holds at most: the oldest beyond are deleted. */
  readonly keep?: number;
  /** The value that is replaced, null for none: makes read-modify-write safe. Absent: whatever there is. */
  readonly ifValue?: string | null;
}

/** Accepted also for an unknown record. */
interface RecordDelete {
  readonly kind: "record-delete";
  readonly space: string;
  readonly key: string;
}

export type RecordWrite = RecordPut | RecordDelete;

export interface RecordQuery {
  /** Key of the last one of the page before. */
  readonly after?: string;
  readonly limit: number;
}

export interface StoredRecord {
  readonly key: string;
  readonly value: string;
}
