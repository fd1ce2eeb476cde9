import type { Dialect } from "../../../core/dialects/contract.ts";
import { DIALECT_NAME } from "../runtime/options.ts";
import { can } from "./can.ts";
import { LOSSES } from "./losses.ts";

/** Served over the carriers of a server, and called over them. */
export const a2aLite: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(LOSSES),
  serving: {},
  calling: [],
};
