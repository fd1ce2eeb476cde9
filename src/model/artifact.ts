import type { JsonObject } from "./json.ts";
import type { Part } from "./part.ts";

export interface Artifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

/**
 * The same artifact with other parts. Built member by member: an object made by spreading another and adding to it gets
 * a hidden class of its own in V8, which costs more than the object, for every chunk of every stream.
 */
export function withParts(artifact: Omit<Artifact, "parts">, parts: readonly Part[]): Artifact {
  const copy: { -readonly [K in keyof Artifact]: Artifact[K] } = { artifactId: artifact.artifactId, parts };
  if (artifact.name !== undefined) copy.name = artifact.name;
  if (artifact.description !== undefined) copy.description = artifact.description;
  if (artifact.metadata !== undefined) copy.metadata = artifact.metadata;
  if (artifact.extensions !== undefined) copy.extensions = artifact.extensions;
  return copy;
}
