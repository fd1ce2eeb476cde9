import type { Driver } from "./driver.ts";
import { Gates } from "./gates.ts";
import type { Pair } from "./pairs.ts";
import type { ServerFeatures } from "./servers/profile.ts";

/** A running server, and a client that found it by its address. */
export interface Stage {
  readonly driver: Driver;
  readonly gates: Gates;
  close(): Promise<void>;
}

/** `without` names what the server is not to offer. */
export async function openStage(pair: Pair, without: keyof ServerFeatures | undefined): Promise<Stage> {
  const gates = new Gates();
  const server = await pair.serve({ push: without !== "push" }, gates);
  try {
    const driver = await pair.drive(server.url);
    const wanted = `${pair.binding} ${pair.version}`;
    if (driver.speaks !== wanted) throw new Error(`The client speaks ${driver.speaks}, not ${wanted}.`);
    return { driver, gates, close: () => server.close() };
  } catch (error) {
    await server.close();
    throw error;
  }
}
