import type { Fields } from "../json.ts";
import type { OperationName } from "./peer.ts";

/**
 * How a version writes what checks say in the words of 1.0. Requests may be wrong on purpose: what a spelling does not
 * recognise it passes on as it is.
 */
export interface Spelling {
  request(operation: OperationName, params: Fields): Fields;
  result(operation: OperationName, wire: unknown): unknown;
  event(wire: unknown): Fields;
}

export const SPELLING_V1: Spelling = {
  request: (_operation, params) => params,
  result: (_operation, wire) => wire,
  event: (wire) => (typeof wire === "object" && wire !== null ? (wire as Fields) : {}),
};
