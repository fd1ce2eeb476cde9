/** What is tested, as data. What a requirement means for a server is in the checks that show it. */

export const LEVELS = ["MUST", "SHOULD", "MAY"] as const;
export type Level = (typeof LEVELS)[number];

export const VERSIONS = ["1.0", "0.3"] as const;
export type Version = (typeof VERSIONS)[number];

export const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
export type Binding = (typeof BINDINGS)[number];

export interface Requirement {
  readonly level: Level;
  /** Where the specification of each version says it; a version that is missing here does not ask for it. */
  readonly sections: Readonly<Partial<Record<Version, string>>>;
  readonly title: string;
  /** Rows of the numbered list of obligations in `test/wire/requirements.ts` that it belongs to. */
  readonly numbers?: readonly number[];
}

export type RequirementRows = Readonly<Record<string, Requirement>>;
