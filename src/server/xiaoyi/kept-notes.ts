/** Notes of many, in one file. */
import type { Notes } from "../../dialects/xiaoyi/notes.ts";
import type { Log } from "../../model/ports.ts";
import { KeptMap } from "./kept-map.ts";

/** All of them are written whenever one is new; the oldest are forgotten. */
const MOST_NOTES = 5_000;
/** Nobody's ids are longer, and what is kept has to end somewhere. */
const LONGEST_ID = 512;

export class KeptNotes {
  readonly #map: KeptMap<string>;
  readonly #log: Log;

  /** Without a file they last as long as the process. */
  constructor(file: string | undefined, log: Log) {
    this.#map = new KeptMap(file, MOST_NOTES, log);
    this.#log = log;
  }

  /** Those of one; nobody finds what is another's. */
  of(...whose: readonly string[]): Notes {
    const scope = JSON.stringify(whose);
    const keyOf = (id: string) => JSON.stringify([scope, id]);
    return {
      all: async () => {
        const entries = await this.#map.entries().catch((error: unknown) => {
          this.#tell(error);
          return [];
        });
        return entries.flatMap(([key, value]) => {
          const [owner, id] = JSON.parse(key) as [string, string];
          return owner === scope ? [[id, value] as const] : [];
        });
      },
      get: (id) =>
        this.#map.get(keyOf(id)).catch((error: unknown) => {
          this.#tell(error);
          return undefined;
        }),
      set: async (id, value) => {
        if (id.length > LONGEST_ID || value.length > LONGEST_ID) return;
        await this.#map.set(keyOf(id), value).catch(this.#tell);
      },
      delete: (id) => this.#map.delete(keyOf(id)).catch(this.#tell),
    };
  }

  /** What was noted before is kept then. */
  settled(): Promise<void> {
    return this.#map.settled();
  }

  readonly #tell = (error: unknown): void => {
    this.#log.warn({ err: error }, "What is to be known of conversations with Xiaoyi could not be kept or read.");
  };
}
