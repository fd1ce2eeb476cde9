/** Who logged in, by login. */
import type { Bindings } from "../../dialects/xiaoyi-http/index.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { KeptMap } from "./kept-map.ts";

/** Logins beyond this many are forgotten, the oldest first: those users are asked to log in again. */
const MOST_BINDINGS = 100_000;

export class AccountBindings {
  readonly #accounts: KeptMap<JsonObject>;

  /** Without a file they last as long as the process. */
  constructor(file: string | undefined, log: Log, most: number = MOST_BINDINGS) {
    this.#accounts = new KeptMap(file, most, log, { synced: true });
  }

  /** Those of one entry. */
  of(agent: string, owner: string): Bindings {
    const keyOf = (loginSessionId: string) => JSON.stringify([agent, owner, loginSessionId]);
    return {
      keep: (id, account) => this.#accounts.set(keyOf(id), account),
      find: (id) => this.#accounts.get(keyOf(id)),
      forget: (id) => this.#accounts.delete(keyOf(id)),
    };
  }
}
