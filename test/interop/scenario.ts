import type { OperationKind } from "../../src/core/model/operation.ts";
import type { Driver } from "./driver.ts";
import type { Gates } from "./gates.ts";
import type { ServerFeatures } from "./servers/profile.ts";

/** One thing that any client must be able to do with any server. */
export interface Scenario {
  readonly name: string;
  readonly operation: OperationKind | "card";
  /** What is asserted, as a sentence. */
  readonly shows: string;
  /** What the server is made without. */
  readonly without?: keyof ServerFeatures;
  run(driver: Driver, gates: Gates): Promise<void>;
}
