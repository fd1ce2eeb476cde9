import { BINDING_REQUIREMENTS } from "./bindings.ts";
import { DELIVERY_REQUIREMENTS } from "./delivery.ts";
import { DISCOVERY_REQUIREMENTS } from "./discovery.ts";
import { OPERATION_REQUIREMENTS } from "./operations.ts";

/** What is tested, as data. What a requirement means for a server is in the checks that show it. */

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
  /** Rows of the numbered list of obligations in `test/wire/requirements.ts` that it belongs to. */
  readonly numbers?: readonly number[];
}

export type RequirementRows = Readonly<Record<string, Requirement>>;

const ROWS = {
  ...DISCOVERY_REQUIREMENTS,
  ...OPERATION_REQUIREMENTS,
  ...DELIVERY_REQUIREMENTS,
  ...BINDING_REQUIREMENTS,
};

export type RequirementId = keyof typeof ROWS;

export const REQUIREMENTS: Readonly<Record<RequirementId, Requirement>> = ROWS;
export const REQUIREMENT_IDS = Object.keys(ROWS) as RequirementId[];

/** Whether servers of that version are asked for it, at one of the levels down to the given one. */
export function isApplicable(id: RequirementId, version: Version, lowest: Level = "MAY"): boolean {
  const { level, sections } = REQUIREMENTS[id];
  return sections[version] !== undefined && LEVELS.indexOf(level) <= LEVELS.indexOf(lowest);
}

export function sectionOf(id: RequirementId, version: Version): string {
  return REQUIREMENTS[id].sections[version] ?? "";
}
