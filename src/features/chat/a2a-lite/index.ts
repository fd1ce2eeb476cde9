import type { Dialect } from "../../../core/dialects/contract.ts";
import { can } from "./can.ts";
import { LOSSES } from "./losses.ts";

/** Stored with every task that is created over a channel, so it must never change. */
export const DIALECT_NAME = "a2a-lite";

/** Served over the carriers of a server, and called over them. */
export const a2aLite: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(LOSSES),
  serving: {},
  calling: [],
};
