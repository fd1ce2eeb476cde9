/** Something small about each of some conversations or tasks, beyond the life of a process. Never rejects. */
export interface Notes {
  /** Ids, and what was noted of them. */
  all(): Promise<readonly (readonly [string, string])[]>;
  get(id: string): Promise<string | undefined>;
  /** Resolves when it is kept. */
  set(id: string, value: string): Promise<void>;
  delete(id: string): Promise<void>;
}
