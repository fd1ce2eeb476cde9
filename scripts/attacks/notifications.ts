import pg from "pg";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { openDatabase } from "../../src/features/cluster/postgres/connection.ts";
import { hasPostgres, startPostgres } from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import type { Attack } from "./kit/attack.ts";
import { deadline } from "./kit/sockets.ts";

const AT_A_TIME = 5_000;
/** Equal ones would be sent once. */
const NOTIFY = `SELECT pg_notify($1, '[0, {"cancel": ["' || n || '"]}]') FROM generate_series(1, ${AT_A_TIME}) n`;
const PAYLOAD_BYTES = 24;

interface Addresses {
  readonly store: string;
  /** Of a role that may connect, and nothing else. */
  readonly guest: string;
}

const missing = () => (hasPostgres() ? undefined : "PostgreSQL");

async function prepare() {
  const server = await startPostgres();
  await server.run("CREATE ROLE guest LOGIN PASSWORD 'guest'");
  const addresses: Addresses = {
    store: server.url(),
    guest: `postgres://guest:guest@127.0.0.1:${server.port}/postgres`,
  };
  const config = { store: addresses.store };
  return { config, prepared: JSON.stringify(addresses), release: () => server.close() };
}

/** Notifies without a pause, as a role of the same database that may connect and nothing else. */
function attackOf(name: string, what: string, channelIn: (addresses: Addresses) => Promise<string>): Attack {
  return {
    name,
    what,
    missing,
    prepare,
    async run(target) {
      const isOver = deadline(target);
      const addresses = JSON.parse(target.prepared ?? "{}") as Addresses;
      const channel = await channelIn(addresses);
      const client = new pg.Client({ connectionString: addresses.guest });
      await client.connect();
      while (!isOver()) {
        await client.query(NOTIFY, [channel]);
        target.sent(AT_A_TIME * PAYLOAD_BYTES);
      }
      await client.end();
    },
  };
}

export const guessedNotifications = attackOf(
  "guessed-notifications",
  "NOTIFY without end over the channel that a role without rights can guess",
  async () => "dragoman",
);

export const knownNotifications = attackOf(
  "known-notifications",
  "NOTIFY without end over the channel of the nodes, which only the owner of the tables can read",
  async ({ store }) => {
    const database = await openDatabase(store, { leaseMs: 3_000, log: SILENT_LOG });
    const [row] = await database.query<{ value: string }>("SELECT value FROM @record WHERE space = 'wakeups'");
    await database.close();
    return row?.value ?? "none";
  },
);
