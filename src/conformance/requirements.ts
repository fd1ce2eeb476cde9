import { LEVELS, type Level, type Requirement, type Version } from "./requirement.ts";
import { BINDINGS } from "./requirements/bindings.ts";
import { DELIVERY } from "./requirements/delivery.ts";
import { DISCOVERY } from "./requirements/discovery.ts";
import { OPERATIONS } from "./requirements/operations.ts";

const ROWS = { ...DISCOVERY, ...OPERATIONS, ...DELIVERY, ...BINDINGS };

export type RequirementId = keyof typeof ROWS;

export const REQUIREMENTS: Readonly<Record<RequirementId, Requirement>> = ROWS;
export const REQUIREMENT_IDS = Object.keys(ROWS) as RequirementId[];

/** Whether servers of that version are asked for it, at one of the levels down to the given one. */
export function applies(id: RequirementId, version: Version, lowest: Level = "MAY"): boolean {
  const { level, sections } = REQUIREMENTS[id];
  return sections[version] !== undefined && LEVELS.indexOf(level) <= LEVELS.indexOf(lowest);
}

export function sectionOf(id: RequirementId, version: Version): string {
  return REQUIREMENTS[id].sections[version] ?? "";
}
