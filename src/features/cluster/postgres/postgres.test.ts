import { afterAll, beforeAll, describe } from "vitest";
import { type Clock, SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { TaskStore } from "../../../core/store/contract.ts";
import { describeStore } from "../../../core/store/contract-suite.ts";
import { openPostgresStore } from "./postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "./testing/start-postgres.ts";

describe.runIf(hasPostgres())("PostgreSQL", () => {
  let server: PostgresServer;
  let count = 0;
  const urls = new Map<TaskStore, string>();

  beforeAll(async () => {
    server = await startPostgres();
  });

  afterAll(() => server.close());

  async function open(clock?: Clock, url = server.url(`store ${count++}`)): Promise<TaskStore> {
    const now = clock && { now: () => clock.now() };
    const store = await openPostgresStore(url, { mode: "serve", clock: systemClock, log: SILENT_LOG, ...now });
    urls.set(store, url);
    return store;
  }

  describeStore("postgres store", {
    open,
    reopen: async (store) => {
      await store.close();
      return open(undefined, urls.get(store));
    },
  });
});
