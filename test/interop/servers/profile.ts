/** What the steered agent says of itself, whoever serves it. */
export const PROFILE = {
  name: "Steered",
  description: "Does what the first word of a message says.",
  version: "1.0.0",
  inputModes: ["text/plain", "application/json", "application/octet-stream"],
  outputModes: ["text/plain", "application/json", "application/octet-stream"],
  skill: { id: "steer", name: "Steer", description: "Obeys.", tags: ["test"] },
  /** Shown to those who say who they are. */
  extendedSkill: { id: "secret", name: "Secret", description: "For callers who say who they are.", tags: ["test"] },
} as const;

export interface ServerFeatures {
  readonly push: boolean;
  /** Refuse whoever does not bear the token. */
  readonly guarded?: boolean;
}

/** A server that a client can be pointed at. */
export interface RunningServer {
  /** Where the card is looked for. */
  readonly url: string;
  close(): Promise<void>;
}
