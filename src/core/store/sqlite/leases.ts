import { STATE_CLASS, TASK_STATES } from "../../model/task.ts";
import type { Lease } from "../contract.ts";
import type { Liveness } from "../single-process.ts";
import { STATE_CODES, toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import { commitAll, fallBackIfDamaged, salvage } from "./damage.ts";
import type { DeliveryOutbox } from "./delivery-claims.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, fromText, PACKED_LEASED_HEAD, type StoredText, toHead } from "./rows.ts";

const ACTIVE_CODES = TASK_STATES.filter((state) => STATE_CLASS[state] === "active").map((state) => STATE_CODES[state]);
interface HeadRow {
  readonly seq: number;
  readonly head: StoredText;
}

const HEAD = `seq, CAST(${PACKED_LEASED_HEAD} AS BLOB) AS head`;
const OF_AGENTS = "scope IN (SELECT id FROM scope WHERE agent IN (SELECT value FROM json_each(?)))";

/** Who runs what. Only one process uses the file, so which nodes live need not be on disk. */
export class Leases {
  readonly #connection: Connection;
  readonly #liveness: Liveness;
  readonly #outbox: DeliveryOutbox;
  readonly #onMoved: () => void;
  readonly #heldEarlier: SqliteStatement<{ seq: number }>;
  readonly #giveUp: SqliteStatement<object>;
  readonly #cancelled: SqliteStatement<{ id: StoredText }>;
  readonly #unheld: SqliteStatement<HeadRow>;
  readonly #heldBy: SqliteStatement<HeadRow>;
  readonly #unheldSeqs: SqliteStatement<{ seq: number }>;
  readonly #one: SqliteStatement<HeadRow>;
  readonly #take: SqliteStatement<object>;
  #beaten = false;

  /** `onMoved` is called after leases have moved. */
  constructor(connection: Connection, liveness: Liveness, outbox: DeliveryOutbox, onMoved: () => void) {
    const { driver } = connection;
    this.#connection = connection;
    this.#liveness = liveness;
    this.#outbox = outbox;
    this.#onMoved = onMoved;
    this.#heldEarlier = driver.prepare(
      `SELECT seq FROM task INDEXED BY task_open
       WHERE open = 1 AND node IS NOT NULL AND node NOT IN (SELECT value FROM json_each(?))`,
    );
    this.#giveUp = driver.prepare("UPDATE task SET node = NULL WHERE seq = ?");
    this.#cancelled = driver.prepare(
      `SELECT ${columns("", "id")} FROM task WHERE open = 1 AND node = ? AND cancel = 1 ORDER BY task.seq`,
    );
    const unheld = `open = 1 AND node IS NULL AND state IN (${ACTIVE_CODES.join(", ")})`;
    this.#unheld = driver.prepare(
      `SELECT ${HEAD} FROM task INDEXED BY task_open WHERE ${unheld} AND ${OF_AGENTS} LIMIT ?`,
    );
    this.#heldBy = driver.prepare(
      `SELECT ${HEAD} FROM task INDEXED BY task_open WHERE open = 1 AND node = ? AND ${OF_AGENTS} LIMIT ?`,
    );
    this.#unheldSeqs = driver.prepare(`SELECT seq FROM task INDEXED BY task_open WHERE ${unheld}`);
    this.#one = driver.prepare(`SELECT ${HEAD} FROM task WHERE seq = ? AND ${OF_AGENTS}`);
    this.#take = driver.prepare("UPDATE task SET node = ?, fence = fence + 1, attempt = attempt + 1 WHERE seq = ?");
  }

  heartbeat(node: string, ttlMs: number): string[] {
    if (!this.#beaten) {
      fallBackIfDamaged<unknown>(() => this.#giveUpEarlier(), this.#noLeases);
      this.#beaten = true;
    }
    this.#liveness.heartbeat(node, ttlMs);
    return fallBackIfDamaged(
      () => this.#cancelled.all(toText(node)).map(({ id }) => fromText(id)),
      // Cancellations reach this process directly: no other one serves the file.
      () => [],
    );
  }

  claim(node: string, agents: readonly string[], max: number): Lease[] {
    const rows = fallBackIfDamaged(
      () => this.#abandoned(node, JSON.stringify(agents.map(toText)), max),
      this.#noLeases,
    );
    if (rows.length === 0) return [];
    const taken = this.#forAll(rows, ({ seq }) => this.#take.run(toText(node), seq));
    this.#liveness.recordLease(node);
    // A task that is held but cannot be read is not found again, and so in no other's way.
    return salvage(
      taken,
      ({ head: stored }) => {
        const head = toHead(stored, (scope) => this.#connection.scopeOf(scope));
        const fence = head.fence + 1;
        return { head: { ...head, fence, attempt: head.attempt + 1, node }, fence };
      },
      this.#report,
    );
  }

  #forAll<Row extends { readonly seq: number }>(rows: readonly Row[], work: (row: Row) => void): readonly Row[] {
    const commit = (some: readonly Row[]) =>
      this.#connection.transact(() => {
        for (const row of some) work(row);
      });
    try {
      return commitAll(rows, commit, this.#report);
    } finally {
      this.#onMoved();
    }
  }

  /** An index that is damaged keeps tasks from being taken over, and nothing else. */
  readonly #noLeases = (error: unknown): HeadRow[] => {
    this.#connection.reportDamage("the index of leases", error);
    return [];
  };

  readonly #report = ({ seq }: { readonly seq: number }, error: unknown): void =>
    this.#connection.reportDamage(`task number ${seq}`, error);

  #abandoned(node: string, agents: string, max: number): HeadRow[] {
    if (max <= 0) return [];
    const rows = fallBackIfDamaged(
      () => this.#unheld.all(agents, max),
      () =>
        salvage(this.#unheldSeqs.all(), ({ seq }) => this.#one.all(seq, agents), this.#report)
          .flat()
          .slice(0, max),
    );
    for (const silent of this.#liveness.expiredNodes()) {
      if (rows.length >= max) break;
      if (silent !== node) rows.push(...this.#heldBy.all(toText(silent), agents, max - rows.length));
    }
    return rows;
  }

  /** Nodes that have taken no lease since the file was opened died with an earlier process. */
  #giveUpEarlier(): void {
    this.#outbox.releaseStaleClaims();
    const held = this.#heldEarlier.all(JSON.stringify(this.#liveness.nodes().map(toText)));
    this.#forAll(held, ({ seq }) => this.#giveUp.run(seq));
  }
}
