/** Sections of a configuration that extensions add, and the options of `serve` with the same keys. */

import type { z } from "zod";
import type { EngineTimes } from "../../engine/options.ts";
import type { ConfigFile } from "../../extension/contract.ts";
import { loadedEntries } from "../../extension/installed.ts";
import type { Fields } from "../../model/json.ts";
import type { Finding } from "../../yaml/problems.ts";
import type { DragomanConfig } from "./config.ts";
import type { ShownValues } from "./shown-values.ts";

export function sectionSchemas(): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(loadedEntries("config", "sections").map(([key, { schema }]) => [key, schema]));
}

/** Of the options of `serve`. */
export function sectionOptionSchemas(): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(loadedEntries("config", "sections").map(([key, { options }]) => [key, options.optional()]));
}

/** What the server works with, by key. */
export function toSectionConfigs(parsed: Fields, file: ConfigFile): Fields {
  return Object.fromEntries(
    loadedEntries("config", "sections").map(([key, { toConfig = (value: unknown) => value }]) => [
      key,
      toConfig(parsed[key], file),
    ]),
  );
}

export function sectionTimes(parsed: Fields): Partial<EngineTimes> {
  return Object.assign({}, ...loadedEntries("config", "sections").map(([key, { times }]) => times?.(parsed[key])));
}

/** By the keys of the sections. */
export function sectionWarnings(config: DragomanConfig): readonly (readonly [key: string, warning: string])[] {
  return loadedEntries("config", "sections").flatMap(([key, { warnings }]) =>
    (warnings?.(config.sections[key], config) ?? []).map((text) => [key, text] as const),
  );
}

export function* sectionValues(config: DragomanConfig): ShownValues {
  for (const [key, { shown }] of loadedEntries("config", "sections"))
    yield* shown?.(config.sections[key], config) ?? [];
}

export function checkSections(root: Fields, agents: Fields): readonly Finding[] {
  return loadedEntries("config", "sections").flatMap(([key, { check }]) => check?.(root[key], agents) ?? []);
}

/** Values to redact in logs. */
export function sectionSecrets(options: Fields): readonly string[] {
  return loadedEntries("config", "sections").flatMap(([key, { secrets }]) =>
    options[key] === undefined ? [] : (secrets?.(options[key]) ?? []),
  );
}
