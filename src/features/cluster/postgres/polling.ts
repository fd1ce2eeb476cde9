import type { Clock, Log } from "../../../core/model/ports.ts";
import type { Wakeup } from "../../../core/store/contract.ts";
import { unescapeText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";

const POLL_MS = 50;
/** While the database is away. */
const MAX_RETRY_MS = 2_000;
/** Open tasks that a poll looks at in its time; with more of them it is less often. */
const POLLED_PER_MS = 20;

interface OpenRow {
  readonly id: string;
  readonly number: number;
  readonly cancel: boolean;
  readonly waits: boolean;
}

interface PollUse {
  isNeeded(): boolean;
  onChange(wakeup: Wakeup | "all"): void;
}

/** Looks at the open tasks for what changed since it last did, as long as no one notifies this process. */
export function createPoll({ query }: Database, clock: Clock, log: Log, { isNeeded, onChange }: PollUse) {
  let running = false;
  let failures = 0;
  let snapshot: string | undefined;
  let known = new Map<string, OpenRow>();
  let cancel = () => {};

  async function look(): Promise<void> {
    const [now] = await query<{ snapshot: string }>("SELECT pg_current_snapshot()::text AS snapshot");
    // Nothing at all was written since.
    if (now?.snapshot === snapshot) return;
    const rows = await query<OpenRow>("SELECT id, number, cancel, node IS NULL AS waits FROM @task WHERE open");
    if (!isNeeded()) return;
    const isFirst = snapshot === undefined;
    snapshot = now?.snapshot;
    const before = known;
    known = new Map(rows.map((row) => [row.id, row]));
    if (isFirst) return onChange("all");
    const grown = rows.filter(({ id, number }) => before.get(id)?.number !== number).map(({ id }) => id);
    const gone = [...before.keys()].filter((id) => !known.has(id));
    const cancelled = rows.filter(({ id, cancel: asked }) => asked && before.get(id)?.cancel !== true);
    const isWaiting = rows.some(({ id, waits }) => waits && before.get(id)?.waits !== true);
    onChange({
      log: [...grown, ...gone].map(unescapeText),
      cancel: cancelled.length > 0 ? cancelled.map(({ id }) => unescapeText(id)) : undefined,
      work: isWaiting || grown.length > 0 || undefined,
      deliveries: true,
    });
  }

  function next(): void {
    if (!isNeeded()) {
      running = false;
      failures = 0;
      snapshot = undefined;
      known = new Map();
      return;
    }
    look()
      .then(
        () => {
          failures = 0;
        },
        (error: unknown) => {
          failures++;
          log.debug({ err: error }, "Could not look for changes.");
        },
      )
      .finally(() => {
        const delay = Math.max(POLL_MS, known.size / POLLED_PER_MS);
        cancel = clock.after(Math.max(delay, Math.min(delay * 2 ** failures, MAX_RETRY_MS)), next);
      });
  }

  return {
    start(): void {
      if (running) return;
      running = true;
      next();
    },
    stop(): void {
      cancel();
    },
  };
}
