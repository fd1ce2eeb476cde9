import { BINDING_REQUIREMENTS } from "./bindings.ts";
import { DELIVERY_REQUIREMENTS } from "./delivery.ts";
import { DISCOVERY_REQUIREMENTS } from "./discovery.ts";
import { OPERATION_REQUIREMENTS } from "./operations.ts";
import { UNOBSERVABLE_REQUIREMENTS } from "./unobservable.ts";

/**
 * What is tested, as data. What a requirement means for a server is in the checks that show it; our own tests cite the ids
 * at the start of their titles.
 */

export const LEVELS = ["MUST", "SHOULD", "MAY"] as const;
export type Level = (typeof LEVELS)[number];

export const VERSIONS = ["1.0", "0.3"] as const;
export type Version = (typeof VERSIONS)[number];

export const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
export type Binding = (typeof BINDINGS)[number];

interface Requirement {
  readonly level: Level;
  /** Where the specification of each version says it; a version that is missing here does not ask for it. */
  readonly sections: Readonly<Partial<Record<Version, string>>>;
  readonly title: string;
  /** Why it cannot be observed from outside a server; such a requirement has no check, only tests of our own. */
  readonly unobservable?: string;
}

export type RequirementRows = Readonly<Record<string, Requirement>>;

const ROWS = {
  ...DISCOVERY_REQUIREMENTS,
  ...OPERATION_REQUIREMENTS,
  ...DELIVERY_REQUIREMENTS,
  ...BINDING_REQUIREMENTS,
  ...UNOBSERVABLE_REQUIREMENTS,
};

export type RequirementId = keyof typeof ROWS;

export const REQUIREMENTS: Readonly<Record<RequirementId, Requirement>> = ROWS;
/** Those that a server can be checked for. */
export const REQUIREMENT_IDS = (Object.keys(ROWS) as RequirementId[]).filter(
  (id) => REQUIREMENTS[id].unobservable === undefined,
);

/** Whether servers of that version are asked for it, at one of the levels down to the given one. */
export function isApplicable(id: RequirementId, version: Version, lowest: Level = "MAY"): boolean {
  const { level, sections } = REQUIREMENTS[id];
  return sections[version] !== undefined && LEVELS.indexOf(level) <= LEVELS.indexOf(lowest);
}

export function sectionOf(id: RequirementId, version: Version): string {
  return REQUIREMENTS[id].sections[version] ?? "";
}
