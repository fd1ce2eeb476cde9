/** Variables of the platform: groups of them as objects, as devices send them, or as lists of objects, as documented. */
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { isObject } from "./marks.ts";

export type VariableGroup = "systemVariables" | "clientVariables" | "memoryVariables";

export function mergedVariables(variables: JsonObject, group: VariableGroup): JsonObject {
  const found = variables[group];
  if (isObject(found)) return found;
  const merged: Record<string, JsonValue> = {};
  for (const one of Array.isArray(found) ? (found as readonly JsonValue[]) : []) {
    if (isObject(one)) Object.assign(merged, named(one));
  }
  return merged;
}

/** In lists, a variable may also be told as a name and a value. */
function named(one: JsonObject): JsonObject {
  const { name, value } = one;
  return typeof name === "string" && value !== undefined && name !== "__proto__" ? { [name]: value } : one;
}
