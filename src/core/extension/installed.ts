/** The extensions of this process. What they add has names that all servers and commands of the process share. */

import type { CallingParts, ConfigParts, Extension, Loaded, ServingParts } from "./contract.ts";

interface Groups {
  readonly config: ConfigParts;
  readonly calling: CallingParts;
  readonly serving: ServingParts;
}
type Group = keyof Groups;
type Parts = { readonly [G in Group]: Map<Extension, Groups[G]> };

const installed: Extension[] = [];
const parts: Parts = { config: new Map(), calling: new Map(), serving: new Map() };
let changes = 0;

/**
 * Attaches extensions, all or none; one that is attached already is left as it is. Throws a TypeError that says what is
 * wrong. What they load is checked when it is loaded.
 */
export function installExtensions(extensions: readonly Extension[]): void {
  const added = extensions.filter((extension) => !installed.includes(extension));
  const all = [...installed, ...added];
  const problems = added.flatMap((extension) => [
    ...checkName(extension, all),
    ...findMissing(extension, all),
    ...findClashes("stores", extension, all, ({ stores }) => stores),
  ]);
  if (problems.length > 0) throw new TypeError(problems.join("\n"));
  installed.push(...added);
  if (added.length > 0) changes++;
}

/** Loads what the installed extensions add to some groups; nothing of a group is there before all of it is. */
export async function loadExtensions(...groups: readonly Group[]): Promise<void> {
  await Promise.all(groups.map((group) => loadGroup(group)));
}

async function loadGroup<G extends Group>(group: G): Promise<void> {
  const known: Map<Extension, Groups[G]> = parts[group];
  const missing = installed.filter((extension) => extension[group] !== undefined && !known.has(extension));
  if (missing.length === 0) return;
  const loaded = await Promise.all(
    missing.map(async (extension) => [extension, await load(extension[group] as Loaded<Groups[G]>)] as const),
  );
  const all = new Map([...known, ...loaded]);
  const problems = loaded.flatMap(([extension]) =>
    NAMED[group].flatMap((name) =>
      findClashes(
        name,
        extension,
        [...all.keys()],
        (one) => (all.get(one) as Record<string, object | undefined>)[name],
      ),
    ),
  );
  if (problems.length > 0) throw new TypeError(problems.join("\n"));
  for (const [extension, its] of loaded) known.set(extension, its);
  changes++;
}

function load<T>(given: Loaded<T>): T | Promise<T> {
  return typeof given === "function" ? (given as () => Promise<T>)() : given;
}

export const installedExtensions = (): readonly Extension[] => installed;

/** What is loaded of a group, in the order of the extensions. */
export function loadedParts<G extends Group>(group: G): readonly Groups[G][] {
  const known: ReadonlyMap<Extension, Groups[G]> = parts[group];
  return installed.flatMap((extension) => known.get(extension) ?? []);
}

/** The entries of all extensions by name. */
export function loadedEntries<G extends Group, Key extends keyof Groups[G]>(
  group: G,
  key: Key,
): readonly (readonly [string, EntryOf<Groups[G][Key]>])[] {
  return loadedParts(group).flatMap(
    (one) => Object.entries(one[key] ?? {}) as (readonly [string, EntryOf<Groups[G][Key]>])[],
  );
}

type EntryOf<T> = NonNullable<T> extends Readonly<Record<string, infer Entry>> ? Entry : never;

/** Computed once for what is loaded, and again when there is more. */
export function perInstallation<T>(compute: () => T): () => T {
  let at = -1;
  let value: T;
  return () => {
    if (at !== changes) value = compute();
    at = changes;
    return value;
  };
}

/** The names of each group, of which two extensions must not have the same. */
const NAMED: Readonly<Record<Group, readonly string[]>> = {
  config: ["sections", "agentKinds", "agentKeys", "builtinAgents"],
  calling: ["dialects", "addresses"],
  serving: [],
};
const NOUNS: Readonly<Record<string, string>> = {
  stores: "store",
  sections: "section",
  agentKinds: "kind of agent",
  agentKeys: "key of agents",
  builtinAgents: "built-in agent",
  dialects: "dialect",
  addresses: "address",
};

const NAME = /^[a-z][a-z0-9-]*$/;

function checkName({ name }: Extension, all: readonly Extension[]): readonly string[] {
  if (typeof name !== "string" || !NAME.test(name)) {
    return [`An extension has the name ${JSON.stringify(name)}; it must be lower-case letters, digits and dashes.`];
  }
  return all.filter((other) => other.name === name).length > 1
    ? [`Two different extensions have the name ${name}.`]
    : [];
}

function findClashes(
  kind: string,
  extension: Extension,
  all: readonly Extension[],
  entriesOf: (extension: Extension) => object | undefined,
): readonly string[] {
  return Object.keys(entriesOf(extension) ?? {}).flatMap((entry) => {
    const other = all.find((one) => one !== extension && Object.hasOwn(entriesOf(one) ?? {}, entry));
    const what = `the ${NOUNS[kind]} ${entry}`;
    return other === undefined
      ? []
      : [`The extension ${extension.name} adds ${what}, and so does the extension ${other.name}.`];
  });
}

function findMissing({ name, requires = [] }: Extension, all: readonly Extension[]): readonly string[] {
  return requires
    .filter((required) => !all.some((other) => other.name === required))
    .map((required) => `The extension ${name} requires the extension ${required}, which is not there.`);
}
