/** The result of a run, as data. */

import type { Exchange } from "./exchange-log.ts";
import type { Binding, Level, RequirementId, Version } from "./requirements.ts";

export const REPORT_SCHEMA_VERSION = 1;

export type Status = "passed" | "failed" | "not-shown";

export interface CheckResult {
  readonly name: string;
  readonly status: Status;
  readonly durationMs: number;
  /** Why it failed or could not be shown. */
  readonly reason?: string;
  readonly evidence?: readonly Exchange[];
}

export interface RequirementResult {
  readonly id: RequirementId;
  readonly section: string;
  readonly level: Level;
  readonly title: string;
  readonly status: Status;
  readonly checks: readonly CheckResult[];
}

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly notShown: number;
}

export type Subject =
  | { readonly kind: "card"; readonly version: Version; readonly url: string }
  | {
      readonly kind: "interface";
      readonly version: Version;
      readonly binding: Binding;
      readonly url: string;
      readonly tenant?: string;
    }
  | { readonly kind: "bindings"; readonly version: Version };

export interface Group {
  readonly subject: Subject;
  readonly tally: Readonly<Record<Level, Tally>>;
  readonly requirements: readonly RequirementResult[];
}

export interface Report {
  readonly schemaVersion: typeof REPORT_SCHEMA_VERSION;
  readonly agent: { readonly name: string; readonly version: string; readonly card: string };
  readonly startedAt: string;
  readonly durationMs: number;
  /** False if the run was aborted; checks that had not run by then are not shown. */
  readonly complete: boolean;
  /** No requirement of level MUST failed. */
  readonly conformant: boolean;
  readonly tally: Readonly<Record<Level, Tally>>;
  readonly groups: readonly Group[];
  /** Interfaces that the suite does not support. */
  readonly untested: readonly string[];
}

/** Failed if any check failed; otherwise passed if any check passed. */
export function statusOf(checks: readonly CheckResult[]): Status {
  if (checks.some(({ status }) => status === "failed")) return "failed";
  return checks.some(({ status }) => status === "passed") ? "passed" : "not-shown";
}

export function tallyOf(results: readonly RequirementResult[]): Record<Level, Tally> {
  const of = (level: Level): Tally => {
    const count = (wanted: Status) =>
      results.filter((result) => result.level === level && result.status === wanted).length;
    return { passed: count("passed"), failed: count("failed"), notShown: count("not-shown") };
  };
  return { MUST: of("MUST"), SHOULD: of("SHOULD"), MAY: of("MAY") };
}

export function subjectName(subject: Subject): string {
  switch (subject.kind) {
    case "card":
      return `Agent card, A2A ${subject.version}`;
    case "interface": {
      const tenant = subject.tenant === undefined ? "" : `, tenant ${subject.tenant}`;
      return `${subject.binding}, A2A ${subject.version}, ${subject.url}${tenant}`;
    }
    case "bindings":
      return `Across bindings, A2A ${subject.version}`;
  }
}
