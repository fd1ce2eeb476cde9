import { type ListTasksRequest, type ListTasksResponse, Task } from "@a2a-js/sdk";
import type { TaskStore } from "@a2a-js/sdk/server";
import Database from "libsql";

/** The task store a user of that SDK would write: one row per task that holds its whole JSON, durable on commit. */
export class SqliteTaskStore implements TaskStore {
  readonly #save: Database.Statement;
  readonly #load: Database.Statement;
  readonly #list: Database.Statement;
  readonly #count: Database.Statement;

  constructor(file: string) {
    const database = new Database(file);
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    database.exec("CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY, json TEXT NOT NULL)");
    this.#save = database.prepare(
      "INSERT INTO tasks (id, json) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET json = excluded.json",
    );
    this.#load = database.prepare("SELECT json FROM tasks WHERE id = ?");
    this.#list = database.prepare("SELECT id, json FROM tasks WHERE id > ? ORDER BY id LIMIT ?");
    this.#count = database.prepare("SELECT count(*) AS total FROM tasks");
  }

  async save(task: Task): Promise<void> {
    this.#save.run(task.id, JSON.stringify(Task.toJSON(task)));
  }

  async load(taskId: string): Promise<Task | undefined> {
    const row = this.#load.get(taskId) as { json: string } | undefined;
    return row && Task.fromJSON(JSON.parse(row.json));
  }

  async list({ pageSize = 50, pageToken }: ListTasksRequest): Promise<ListTasksResponse> {
    const rows = this.#list.all(pageToken, pageSize) as { id: string; json: string }[];
    const { total } = this.#count.get() as { total: number };
    return {
      tasks: rows.map((row) => Task.fromJSON(JSON.parse(row.json))),
      nextPageToken: rows.length === pageSize ? (rows.at(-1)?.id ?? "") : "",
      pageSize,
      totalSize: total,
    };
  }
}
