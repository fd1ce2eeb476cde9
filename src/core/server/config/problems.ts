import type { Fields } from "../../model/json.ts";
import { closestMatch } from "../../model/suggestions.ts";
import type { Finding, Path } from "../../yaml/problems.ts";

/** Reserved keys that are not available in this version. `*` matches any name. */
export const UNAVAILABLE_KEYS: Readonly<Record<string, string>> = {
  telemetry: "telemetry",
};

/** The feature of a reserved key that is not available in this version. */
export function unavailableFeature(path: Path): string | undefined {
  const steps = path.map(String);
  const pattern = steps[0] === "agents" && steps.length > 1 ? ["agents", "*", ...steps.slice(2)] : steps;
  const key = pattern.join(".");
  return Object.hasOwn(UNAVAILABLE_KEYS, key) ? UNAVAILABLE_KEYS[key] : undefined;
}

function unavailableMessage(feature: string): string {
  return `not available in this version (${feature})`;
}

/** Why a key that the schema does not have is refused, if it is a reserved one. */
export function describeReservedKey(path: Path): string | undefined {
  const feature = unavailableFeature(path);
  return feature === undefined ? undefined : unavailableMessage(feature);
}

/** Values of a file before validation. */
export function checkAgentExists(name: unknown, agents: Fields, path: Path): readonly Finding[] {
  const names = Object.keys(agents);
  if (typeof name !== "string" || names.length === 0 || Object.hasOwn(agents, name)) return [];
  const meant = closestMatch(name, names);
  const hint = meant === undefined ? `the agents are ${names.join(", ")}` : `did you mean "${meant}"?`;
  return [{ path, message: `there is no agent "${name}"; ${hint}` }];
}
