import { describeMissing, KEY_OWNERS } from "../../extension/missing.ts";
import type { Fields } from "../../model/json.ts";
import { closestMatch } from "../../model/suggestions.ts";
import type { Finding, Path } from "../../yaml/problems.ts";

/** Reserved keys that are not available in this version. `*` matches any name. */
export const UNAVAILABLE_KEYS: Readonly<Record<string, string>> = {
  telemetry: "telemetry",
};

/** Why a key that the schema does not have is refused, if it is reserved or that of an extension that is not there. */
export function describeAbsentKey(path: Path, choice?: string): string | undefined {
  const steps = [...path, ...(choice === undefined ? [] : [choice])].map(String);
  const pattern = steps[0] === "agents" && steps.length > 1 ? ["agents", "*", ...steps.slice(2)] : steps;
  const key = pattern.join(".");
  return Object.hasOwn(UNAVAILABLE_KEYS, key)
    ? `not available in this version (${UNAVAILABLE_KEYS[key]})`
    : describeMissing(KEY_OWNERS, key);
}

/** Values of a file before validation. */
export function checkAgentExists(name: unknown, agents: Fields, path: Path): readonly Finding[] {
  const names = Object.keys(agents);
  if (typeof name !== "string" || names.length === 0 || Object.hasOwn(agents, name)) return [];
  const meant = closestMatch(name, names);
  const hint = meant === undefined ? `the agents are ${names.join(", ")}` : `did you mean "${meant}"?`;
  return [{ path, message: `there is no agent "${name}"; ${hint}` }];
}
