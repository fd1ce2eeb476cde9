import { STATE_CLASS, TASK_STATES } from "../../model/state.ts";
import type { Lease } from "../contract.ts";
import type { Liveness } from "../liveness.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import type { PushOutbox } from "./push-outbox.ts";
import { STATE_CODES, TASK_COLUMNS, type TaskRow, toHead } from "./rows.ts";
import { fromText, toText } from "./text.ts";

const ACTIVE_CODES = TASK_STATES.filter((state) => STATE_CLASS[state] === "active").map((state) => STATE_CODES[state]);
const OF_AGENTS = "scope IN (SELECT id FROM scope WHERE agent IN (SELECT value FROM json_each(?)))";

/** Who runs what. Only one process uses the file, so which nodes live need not be on disk. */
export class Leases {
  readonly #connection: Connection;
  readonly #liveness: Liveness;
  readonly #outbox: PushOutbox;
  readonly #holders: SqliteStatement<{ node: string }>;
  readonly #giveUp: SqliteStatement<object>;
  readonly #cancelled: SqliteStatement<{ id: string }>;
  readonly #unheld: SqliteStatement<TaskRow>;
  readonly #heldBy: SqliteStatement<TaskRow>;
  readonly #take: SqliteStatement<object>;
  #beaten = false;

  constructor(connection: Connection, liveness: Liveness, outbox: PushOutbox) {
    const { driver } = connection;
    this.#connection = connection;
    this.#liveness = liveness;
    this.#outbox = outbox;
    this.#holders = driver.prepare("SELECT DISTINCT node FROM task WHERE open = 1 AND node IS NOT NULL");
    this.#giveUp = driver.prepare("UPDATE task SET node = NULL WHERE open = 1 AND node = ?");
    this.#cancelled = driver.prepare("SELECT id FROM task WHERE open = 1 AND node = ? AND cancel = 1 ORDER BY seq");
    this.#unheld = driver.prepare(
      `SELECT ${TASK_COLUMNS} FROM task INDEXED BY task_open
       WHERE open = 1 AND node IS NULL AND state IN (${ACTIVE_CODES.join(", ")}) AND ${OF_AGENTS} LIMIT ?`,
    );
    this.#heldBy = driver.prepare(
      `SELECT ${TASK_COLUMNS} FROM task INDEXED BY task_open WHERE open = 1 AND node = ? AND ${OF_AGENTS} LIMIT ?`,
    );
    this.#take = driver.prepare("UPDATE task SET node = ?, fence = fence + 1, attempt = attempt + 1 WHERE seq = ?");
  }

  beat(node: string, ttlMs: number): string[] {
    if (!this.#beaten) {
      this.#giveUpEarlier();
      this.#beaten = true;
    }
    this.#liveness.beat(node, ttlMs);
    return this.#cancelled.all(toText(node)).map(({ id }) => fromText(id));
  }

  claim(node: string, agents: readonly string[], max: number): Lease[] {
    const rows = this.#abandoned(node, JSON.stringify(agents.map(toText)), max);
    if (rows.length === 0) return [];
    this.#connection.transact(() => {
      for (const { seq } of rows) this.#take.run(toText(node), seq);
    });
    this.#liveness.tookLease(node);
    return rows.map((row) => {
      const fence = row.fence + 1;
      const taken = { ...row, fence, attempt: row.attempt + 1, node: toText(node) };
      return { head: toHead(taken, this.#connection.scopeOf(row.scope)), fence };
    });
  }

  #abandoned(node: string, agents: string, max: number): TaskRow[] {
    if (max <= 0) return [];
    const rows = this.#unheld.all(agents, max);
    for (const silent of this.#liveness.silentNodes()) {
      if (rows.length >= max) break;
      if (silent !== node) rows.push(...this.#heldBy.all(toText(silent), agents, max - rows.length));
    }
    return rows;
  }

  /** Nodes that have taken no lease since the file was opened died with an earlier process. */
  #giveUpEarlier(): void {
    this.#outbox.giveUpEarlier();
    const dead = this.#holders.all().filter(({ node }) => !this.#liveness.knows(fromText(node)));
    if (dead.length === 0) return;
    this.#connection.transact(() => {
      for (const { node } of dead) this.#giveUp.run(node);
    });
  }
}
