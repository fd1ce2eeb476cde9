import { randomInt } from "node:crypto";
import { hostname } from "node:os";
import { STATE_CLASS, TASK_STATES } from "../../../core/model/task.ts";
import type { Lease, StoreNode } from "../../../core/store/contract.ts";
import { STATE_CODES, textOrNull, toText, unescapeText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";
import { HEAD_COLUMNS, type HeadRow, type Readable, toHead } from "./reader.ts";
import { LOCK_CLASS } from "./wakeups.ts";

const ACTIVE_CODES = TASK_STATES.filter((state) => STATE_CLASS[state] === "active").map((state) => STATE_CODES[state]);

/** How long a node that took a lease counts as alive before its first heartbeat. */
const DEFAULT_TTL_MS = 15_000;
/** A node that has lost its connection may have made another by then, and says so with the next heartbeat. */
const LOCK_GRACE_MS = 1_000;
const FORGET_NODE_MS = 3_600_000;
const RESTART_GRACE = "10 seconds";
const MAX_SESSION = 2 ** 47;

/**
 * Of `node n`: silent for too long, or its process is gone and with it the lock it held. A server that has just started
 * has no locks, though the nodes live.
 */
const IS_DEAD = `(n.expires_at < @now OR (n.lock_key IS NOT NULL AND n.beat_at < @now - ${LOCK_GRACE_MS}
  AND pg_postmaster_start_time() < statement_timestamp() - interval '${RESTART_GRACE}' AND NOT EXISTS (
  SELECT 1 FROM pg_catalog.pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = ${LOCK_CLASS}
    AND l.objid::bigint = n.lock_key AND l.granted
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
)))`;

/** Of `task t`: `$2` are the agents. Not as a join, which could begin with the scope and go through all tasks it has. */
const IS_SERVED = "(SELECT s.agent FROM @scope s WHERE s.id = t.scope) = ANY($2::text[])";

const PUT_NODE = `INSERT INTO @node AS n (id, session, lock_key, beat_at, expires_at, started_at, host, pid, report)
  SELECT id, $2::bigint, $3::bigint, @now, @now + $4::bigint, @now, $5::text, $6::integer, $7::text FROM unnest($1::text[]) AS i (id)
  ORDER BY id ON CONFLICT (id)`;

interface NodeRow {
  readonly id: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly up: number;
  readonly beat_at: number;
  readonly beat_ago: number;
  readonly alive: boolean;
  readonly has_left: boolean;
  readonly tasks: number;
  readonly report: string | null;
}

interface LeaseParts {
  /** Of the advisory lock that this process holds; undefined while it holds none. */
  readonly lockKey: () => number | undefined;
}

export type Leases = ReturnType<typeof createLeases>;

/** Who runs what, by the clock of the database. */
export function createLeases({ query }: Database, { lockKey }: LeaseParts, readable: Readable) {
  const session = randomInt(MAX_SESSION);
  /** Nodes that the database knows. */
  const recorded = new Set<string>();
  let beaten = false;

  const toNodeValues = (nodes: readonly string[], ttlMs: number, report?: string) => [
    nodes.map(toText),
    session,
    lockKey() ?? null,
    ttlMs,
    hostname(),
    process.pid,
    textOrNull(report),
  ];

  /** A node that takes a lease is alive now, even before its first heartbeat. */
  async function record(nodes: Iterable<string>): Promise<void> {
    const fresh = [...new Set(nodes)].filter((node) => !recorded.has(node));
    if (fresh.length === 0) return;
    await query(`${PUT_NODE} DO NOTHING`, toNodeValues(fresh, DEFAULT_TTL_MS));
    for (const node of fresh) recorded.add(node);
  }

  /**
   * What nodes that are gone had claimed is due again. Their tasks wait for a claim; they are given up at once at the
   * first heartbeat, and before a node is forgotten.
   */
  async function releaseDead(node: string): Promise<void> {
    const dead = await query<{ id: string; old: boolean }>(
      `SELECT n.id, n.expires_at < @now - ${FORGET_NODE_MS} AS old FROM @node n WHERE n.id <> $1 AND ${IS_DEAD}`,
      [toText(node)],
    );
    if (dead.length > 0) {
      const ids = dead.map(({ id }) => id);
      await query("UPDATE @delivery SET holder = NULL, due_at = @now WHERE holder = ANY($1::text[])", [ids]);
    }
    const given = dead.filter(({ old }) => old || !beaten).map(({ id }) => id);
    if (given.length > 0) {
      await query("UPDATE @task SET node = NULL, version = version + 1 WHERE open AND node = ANY($1::text[])", [given]);
      await query(`DELETE FROM @node WHERE id = ANY($1::text[]) AND expires_at < @now - ${FORGET_NODE_MS}`, [given]);
    }
    beaten = true;
  }

  return {
    record,

    /** Those of the nodes that are gone. */
    async findExpired(nodes: Iterable<string>): Promise<ReadonlySet<string>> {
      const asked = [...new Set(nodes)];
      if (asked.length === 0) return new Set();
      const alive = await query<{ id: string }>(
        `SELECT n.id FROM @node n WHERE n.id = ANY($1::text[]) AND NOT ${IS_DEAD}`,
        [asked.map(toText)],
      );
      const living = new Set(alive.map(({ id }) => unescapeText(id)));
      return new Set(asked.filter((node) => !living.has(node)));
    },

    async heartbeat(node: string, ttlMs: number, report?: string): Promise<string[]> {
      const rows = await query<{ id: string }>(
        `WITH beat AS (
           ${PUT_NODE} DO UPDATE SET session = excluded.session, lock_key = excluded.lock_key, beat_at = excluded.beat_at,
             expires_at = excluded.expires_at, host = excluded.host, pid = excluded.pid, report = excluded.report
         ) SELECT id FROM @task WHERE open AND node = $8 AND cancel ORDER BY seq`,
        [...toNodeValues([node], ttlMs, report), toText(node)],
      );
      recorded.add(node);
      // The node lives in any case. What keeps it from this now is tried again with the next heartbeat.
      await releaseDead(node).catch(() => {});
      return rows.map(({ id }) => unescapeText(id));
    },

    async claim(node: string, agents: readonly string[], max: number): Promise<Lease[]> {
      if (max <= 0 || agents.length === 0) return [];
      await record([node]);
      const rows = await query<HeadRow>(
        `WITH unheld AS MATERIALIZED (
           SELECT t.seq FROM @task t WHERE t.open AND t.node IS NULL AND t.state = ANY($4::smallint[]) AND ${IS_SERVED}
           LIMIT $3 FOR UPDATE SKIP LOCKED
         ), abandoned AS MATERIALIZED (
           SELECT t.seq FROM @task t WHERE t.open AND ${IS_SERVED}
             AND t.node = ANY(ARRAY(SELECT n.id FROM @node n WHERE n.id <> $1 AND ${IS_DEAD}))
           LIMIT $3 - (SELECT count(*) FROM unheld) FOR UPDATE SKIP LOCKED
         ), t AS (
           UPDATE @task SET node = $1, fence = fence + 1, attempt = attempt + 1, version = version + 1
           WHERE seq IN (SELECT seq FROM unheld UNION ALL SELECT seq FROM abandoned) RETURNING *
         ) SELECT ${HEAD_COLUMNS} FROM t JOIN @scope s ON s.id = t.scope ORDER BY t.seq`,
        [toText(node), agents.map(toText), max, ACTIVE_CODES],
      );
      return rows.flatMap((row) => {
        const head = readable(row.id, () => toHead(row));
        return head === undefined ? [] : [{ head, fence: row.fence }];
      });
    },

    /** The lock was lost or regained: a node that lives without it must not count as dead. */
    async lockChanged(): Promise<void> {
      await query("UPDATE @node SET lock_key = $2::bigint WHERE session = $1", [session, lockKey() ?? null]);
    },

    /** Nodes that are gone and hold tasks or deliveries that another could take. */
    async findAbandoned(): Promise<readonly string[]> {
      const rows = await query<{ id: string }>(
        `SELECT n.id FROM @node n WHERE ${IS_DEAD} AND coalesce(
           (SELECT t.seq FROM @task t WHERE t.open AND t.node = n.id LIMIT 1),
           (SELECT d.place FROM @delivery d WHERE d.holder = n.id LIMIT 1)
         ) IS NOT NULL`,
      );
      return rows.map(({ id }) => unescapeText(id));
    },

    async nodes(): Promise<StoreNode[]> {
      const rows = await query<NodeRow>(
        `SELECT n.id, n.host, n.pid, @now - n.started_at AS up, n.beat_at, @now - n.beat_at AS beat_ago,
           NOT ${IS_DEAD} AS alive, n.expires_at < n.beat_at AS has_left,
           (SELECT count(*) FROM @task t WHERE t.open AND t.node = n.id) AS tasks, n.report
         FROM @node n ORDER BY alive DESC, n.started_at, n.id`,
      );
      return rows.map(({ id, host, pid, up, beat_at, beat_ago, alive, has_left, tasks, report }) => ({
        id: unescapeText(id),
        host: host ?? undefined,
        pid: pid ?? undefined,
        upMs: up,
        beatAt: beat_at,
        beatAgoMs: beat_ago,
        alive,
        left: has_left,
        tasks,
        report: report === null ? undefined : unescapeText(report),
      }));
    },

    /**
     * Others need not wait for the leases of this process to end. Only here does a lease end before its heartbeat, which
     * shows that the node has left.
     */
    async close(): Promise<void> {
      await query("UPDATE @node SET beat_at = @now, expires_at = least(expires_at, @now - 1) WHERE session = $1", [
        session,
      ]);
    },
  };
}
