import type { Path } from "./problems.ts";

/** Keys that have a meaning, but not in this version. `*` stands for any name. */
export const UNAVAILABLE: Readonly<Record<string, string>> = {
  "agents.*.workflow": "workflows",
  "agents.*.llm": "language model agents",
  "agents.*.remote": "remote agents",
  "agents.*.visibility": "the registry",
  channels: "chat channels",
  registry: "the registry",
  telemetry: "telemetry",
};

/** What the key would be for, if it is one that this version does not have. */
export function unavailableFeature(path: Path): string | undefined {
  const steps = path.map(String);
  const pattern = steps[0] === "agents" && steps.length > 1 ? ["agents", "*", ...steps.slice(2)] : steps;
  const key = pattern.join(".");
  return Object.hasOwn(UNAVAILABLE, key) ? UNAVAILABLE[key] : undefined;
}

export function unavailableMessage(feature: string): string {
  return `not available in this version (${feature})`;
}
