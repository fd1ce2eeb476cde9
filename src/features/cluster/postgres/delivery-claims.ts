import type {
  DeliveryClaim,
  DeliveryClaimQuery,
  DeliveryClaims,
  DeliveryProgress,
  PendingDelivery,
  PendingDeliveryQuery,
  Redelivered,
  Redelivery,
  WriteResult,
} from "../../../core/store/contract.ts";
import { acceptWrite, applyDeliveryProgress, type DeliveryState, NO_EFFECTS } from "../../../core/store/rules.ts";
import { stateOf, textOrNull, toText, unescapeText, WANTS_CODES } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";
import { DELIVERY_COLUMNS, type DeliveryRow, SCOPE_COLUMNS, toDelivery, toScope } from "./deliveries.ts";
import type { Leases } from "./leases.ts";
import { toInput } from "./statement-parts.ts";

interface ScopeColumns {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
}

interface ClaimedRow extends DeliveryRow, ScopeColumns {
  readonly task_id: string;
  readonly lane: string;
  readonly claim: number;
  readonly attempts: number;
}

interface ClaimRow extends ClaimedRow {
  /** Deliveries that were looked at. */
  readonly found: number;
  /** Until the next is due; null: there is none. */
  readonly next_in: number | null;
}

/** Without `place` there was nothing to claim. */
type FoundRow = ClaimRow | (Pick<ClaimRow, "found" | "next_in"> & { readonly place: null });

interface StateRow {
  readonly at: number;
  readonly now: number;
  readonly seq: number;
  readonly version: number;
  readonly number: number;
  readonly fence: number;
  readonly state: number;
  /** Null: the delivery is gone. */
  readonly place: number | null;
  readonly route: string;
  readonly wants: number;
  readonly claim: number;
  readonly cursor: number;
  readonly attempts: number;
  readonly due_at: number | null;
  readonly holder: string | null;
  readonly last_error: string | null;
  readonly dead_at: number | null;
}

interface PendingRow extends ScopeColumns {
  readonly place: number;
  readonly task_id: string;
  readonly id: string;
  readonly route: string;
  readonly address: string;
  readonly dialect: string;
  readonly cursor: number;
  readonly number: number;
  readonly attempts: number;
  readonly due_at: number | null;
  readonly last_error: string | null;
  readonly dead_at: number | null;
}

interface RedeliveredRow extends ScopeColumns {
  readonly task_id: string;
  readonly id: string;
  readonly dialect: string;
}

interface ProgressParts {
  /** Whether an earlier attempt may have succeeded. */
  readonly isRepeated: (write: DeliveryProgress) => boolean;
  /** Called with tasks whose version has risen. */
  readonly onChanged: (taskId: string) => void;
}

/** Progress as it is written. */
interface ProgressRow {
  readonly row: StateRow;
  readonly write: DeliveryProgress;
  /** Undefined: the delivery is done. */
  readonly after: DeliveryState | undefined;
}

const PROGRESS = toInput<ProgressRow>(
  [
    { name: "place", type: "bigint", of: ({ write }) => write.place },
    { name: "claim", type: "bigint", of: ({ write }) => write.claim },
    { name: "seq", type: "bigint", of: ({ row }) => row.seq },
    { name: "version", type: "bigint", of: ({ row, after }) => (isIdle(after) ? row.version : null) },
    { name: "done", type: "boolean", of: ({ after }) => after === undefined },
    { name: "cursor", type: "bigint", of: ({ after }) => after?.cursor ?? null },
    { name: "attempts", type: "integer", of: ({ after }) => after?.attempts ?? null },
    { name: "due_at", type: "bigint", of: ({ after }) => after?.dueAt ?? null },
    { name: "holder", type: "text", of: ({ after }) => textOrNull(after?.holder) },
    { name: "last_error", type: "text", of: ({ after }) => textOrNull(after?.lastError) },
    { name: "dead_at", type: "bigint", of: ({ after }) => after?.deadAt ?? null },
  ],
  "i",
  0,
);

/** Nothing is left to deliver: an append that has not seen this must not be written, else it would mark nothing as due. */
function isIdle(after: DeliveryState | undefined): boolean {
  return after !== undefined && after.dueAt === undefined && after.deadAt === undefined;
}

const WRITE_PROGRESS = `WITH input AS MATERIALIZED (SELECT * FROM ${PROGRESS.sql}),
  known AS (
    UPDATE @task t SET version = t.version + 1 FROM (SELECT DISTINCT seq, version FROM input WHERE version IS NOT NULL) i
    WHERE t.seq = i.seq AND t.version = i.version RETURNING t.seq
  ), changed AS (
    UPDATE @delivery d SET cursor = i.cursor, attempts = i.attempts, due_at = i.due_at, holder = i.holder,
      last_error = i.last_error, dead_at = i.dead_at
    FROM input i WHERE d.place = i.place AND d.claim = i.claim AND d.holder IS NOT NULL AND NOT i.done
      AND (i.version IS NULL OR i.seq IN (SELECT seq FROM known)) RETURNING d.place
  ), removed AS (
    DELETE FROM @delivery d USING input i WHERE i.done AND d.place = i.place AND d.claim = i.claim
      AND d.holder IS NOT NULL RETURNING d.place
  ) SELECT place FROM changed UNION ALL SELECT place FROM removed`;

/** What is due is claimed in the order of its time, at most so many per lane with those that are under way. */
const CLAIM = `WITH found AS MATERIALIZED (
    SELECT place, lane, due_at FROM @delivery
    WHERE route = $1 AND due_at <= @now AND lane <> ALL($2::text[])
    ORDER BY due_at, place LIMIT $3 FOR UPDATE SKIP LOCKED
  ), ranked AS (
    SELECT f.place, row_number() OVER (PARTITION BY f.lane ORDER BY f.due_at, f.place) + coalesce(b.n, 0) AS n
    FROM found f LEFT JOIN unnest($4::text[], $5::bigint[]) AS b (lane, n) ON b.lane = f.lane
  ), taken AS (
    UPDATE @delivery d SET holder = $6, due_at = @now + $7::bigint, claim = d.claim + 1
    WHERE d.place IN (SELECT place FROM ranked WHERE n <= $8::bigint) RETURNING d.*
  )
  SELECT (SELECT count(*) FROM found) AS found, n.next_in, c.* FROM (SELECT (
    SELECT due_at - @now FROM @delivery WHERE route = $1 AND due_at > @now ORDER BY due_at LIMIT 1
  ) AS next_in) n LEFT JOIN (
    SELECT ${DELIVERY_COLUMNS}, d.lane, d.claim, d.attempts, t.id AS task_id, ${SCOPE_COLUMNS}, f.due_at AS waited
    FROM taken d JOIN found f ON f.place = d.place JOIN @task t ON t.seq = d.task JOIN @scope s ON s.id = t.scope
  ) c ON true ORDER BY c.waited, c.place`;

export type DeliveryOutbox = ReturnType<typeof createDeliveryOutbox>;

/** What is left to deliver, and which node does it: the log is the outbox, this is how far each delivery has come. */
export function createDeliveryOutbox({ query }: Database, leases: Pick<Leases, "record">) {
  return {
    /** One result per write, in order; undefined: what it was decided from has changed meanwhile. */
    async progress(
      writes: readonly DeliveryProgress[],
      { isRepeated, onChanged }: ProgressParts,
    ): Promise<(WriteResult | undefined)[]> {
      const rows = await query<StateRow>(
        `SELECT i.at, @now AS now, t.seq, t.version, t.number, t.fence, t.state, d.place, d.route, d.wants, d.claim,
           d.cursor, d.attempts, d.due_at, d.holder, d.last_error, d.dead_at
         FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS i (id, place, at)
         JOIN @task t ON t.id = i.id LEFT JOIN @delivery d ON d.place = i.place AND d.task = t.seq`,
        [writes.map(({ id }) => toText(id)), writes.map(({ place }) => place)],
      );
      const results: (WriteResult | undefined)[] = writes.map(() => ({ ok: false, refusal: "missing" }));
      const decided: ProgressRow[] = [];
      for (const row of rows) {
        const write = writes[row.at - 1] as DeliveryProgress;
        if (isRepeated(write) && isMade(row, write)) {
          results[row.at - 1] = acceptWrite(row.number, row.fence, NO_EFFECTS);
          continue;
        }
        if (row.place === null) continue;
        if (row.claim !== write.claim || row.holder === null) {
          results[row.at - 1] = { ok: false, refusal: "fenced" };
          continue;
        }
        results[row.at - 1] = undefined;
        const task = { number: row.number, state: stateOf(row.state) };
        const wants = row.wants === WANTS_CODES.outcome ? "outcome" : "events";
        decided.push({ row, write, after: applyDeliveryProgress(toState(row), wants, write, task, row.now) });
      }
      if (decided.length === 0) return results;
      decided.sort((one, other) => one.row.seq - other.row.seq || one.write.place - other.write.place);
      const written = await query<{ place: number }>(WRITE_PROGRESS, PROGRESS.values(decided));
      const places = new Set(written.map(({ place }) => place));
      for (const { row, write, after } of decided) {
        if (isIdle(after)) onChanged(write.id);
        if (!places.has(write.place)) continue;
        const isDue = after?.holder === undefined && after?.dueAt !== undefined && after.dueAt <= row.now;
        const effects = isDue ? { due: [unescapeText(row.route)] } : NO_EFFECTS;
        results[row.at - 1] = acceptWrite(row.number, row.fence, effects);
      }
      return results;
    },

    /** Asks again without the lanes that turned out to be full, so that those behind them get their turn. */
    async claim({ node, route, max, ttlMs, perLane, busy }: DeliveryClaimQuery): Promise<DeliveryClaims> {
      const counts = new Map(busy);
      const claims: DeliveryClaim[] = [];
      let nextInMs: number | undefined;
      for (;;) {
        const full = [...counts].filter(([, count]) => count >= perLane).map(([lane]) => toText(lane));
        const wanted = max - claims.length;
        await leases.record([node]);
        const rows = await query<FoundRow>(CLAIM, [
          ...[toText(route), full, wanted],
          ...[[...counts.keys()].map(toText), [...counts.values()], toText(node), ttlMs, perLane],
        ]);
        nextInMs = rows[0]?.next_in ?? undefined;
        const taken = rows.filter((row) => row.place !== null).map(toClaim);
        for (const { lane } of taken) counts.set(lane, (counts.get(lane) ?? 0) + 1);
        claims.push(...taken);
        if (claims.length >= max || taken.length === 0 || (rows[0]?.found ?? 0) < wanted) break;
      }
      // The claims that were just made end by themselves, too.
      if (claims.length > 0 && ttlMs > 0) nextInMs = Math.min(nextInMs ?? ttlMs, ttlMs);
      return { claims, nextInMs };
    },

    async pending({ after = 0, limit, dead = false, taskId }: PendingDeliveryQuery): Promise<PendingDelivery[]> {
      const rows = await query<PendingRow>(
        `SELECT d.place, t.id AS task_id, d.id, d.route, d.address, d.dialect, ${SCOPE_COLUMNS}, d.cursor, t.number,
           d.attempts, d.due_at, d.last_error, d.dead_at
         FROM @delivery d JOIN @task t ON t.seq = d.task JOIN @scope s ON s.id = t.scope
         WHERE d.place > $1 AND (d.dead_at IS NOT NULL OR (d.due_at IS NOT NULL AND NOT $2::boolean))
           AND ($3::text IS NULL OR t.id = $3) ORDER BY d.place LIMIT $4`,
        [after, dead, textOrNull(taskId), limit],
      );
      return rows.map((row) => ({
        place: row.place,
        taskId: unescapeText(row.task_id),
        deliveryId: unescapeText(row.id),
        route: unescapeText(row.route),
        address: unescapeText(row.address),
        dialect: unescapeText(row.dialect),
        scope: toScope(row),
        cursor: row.cursor,
        number: row.number,
        attempts: row.attempts,
        dueAt: row.due_at ?? undefined,
        lastError: row.last_error === null ? undefined : unescapeText(row.last_error),
        deadAt: row.dead_at ?? undefined,
      }));
    },

    async redeliver({ taskId, deliveryId, from }: Redelivery): Promise<Redelivered[]> {
      const first = from === undefined ? null : Math.max(from - 1, 0);
      const rows =
        taskId === undefined
          ? await query<RedeliveredRow>(redelivering("d.dead_at IS NOT NULL AND $1::bigint IS NULL"), [null])
          : await query<RedeliveredRow>(
              redelivering(`t.id = $2 AND ($3::text IS NULL OR d.id = $3)
                AND ($1::bigint IS NOT NULL OR d.dead_at IS NOT NULL OR d.attempts > 0)`),
              [first, toText(taskId), textOrNull(deliveryId)],
            );
      return rows.map((row) => ({
        taskId: unescapeText(row.task_id),
        deliveryId: unescapeText(row.id),
        dialect: unescapeText(row.dialect),
        scope: toScope(row),
      }));
    },
  };
}

/** `$1`: the cursor to go back to. */
const redelivering = (condition: string) => `UPDATE @delivery d SET cursor = least(d.cursor, $1::bigint), due_at = @now,
    dead_at = NULL, attempts = 0, holder = NULL, claim = d.claim + 1
  FROM @task t JOIN @scope s ON s.id = t.scope WHERE t.seq = d.task AND ${condition}
  RETURNING t.id AS task_id, d.id, d.dialect, ${SCOPE_COLUMNS}`;

/** The delivery is as the write would have left it. */
function isMade(row: StateRow, { claim, cursor, next }: DeliveryProgress): boolean {
  if (row.place === null) return next.kind === "done";
  return next.kind !== "hold" && row.claim === claim && row.cursor === cursor && row.holder === null;
}

function toClaim(row: ClaimedRow): DeliveryClaim {
  return {
    delivery: toDelivery(unescapeText(row.task_id), row),
    place: row.place,
    claim: row.claim,
    attempts: row.attempts,
    lane: unescapeText(row.lane),
    scope: toScope(row),
  };
}

function toState(row: StateRow): DeliveryState {
  return {
    cursor: row.cursor,
    attempts: row.attempts,
    dueAt: row.due_at ?? undefined,
    holder: row.holder === null ? undefined : unescapeText(row.holder),
    lastError: row.last_error === null ? undefined : unescapeText(row.last_error),
    deadAt: row.dead_at ?? undefined,
  };
}
