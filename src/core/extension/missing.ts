/** Names that the features of this package add, so that a name whose feature is not there is not called unknown. */

type Owners = Readonly<Record<string, string>>;

/** Extensions by key of a configuration; `*` is any name. A value that only some extension knows is one step more. */
export const KEY_OWNERS: Owners = {
  channels: "chat",
  cluster: "cluster",
  registry: "registry",
  xiaoyi: "xiaoyi",
  "agents.*.binding": "gateway",
  "agents.*.credentials": "gateway",
  "agents.*.dialect": "gateway",
  "agents.*.link": "xiaoyi",
  "agents.*.llm": "llm",
  "agents.*.origins": "gateway",
  "agents.*.remote": "gateway",
  "agents.*.requiredExtension": "writers",
  "agents.*.streaming": "gateway",
  "agents.*.visibility": "registry",
  "agents.*.workflow": "workflow",
  "agents.*.use.document": "writers",
  "agents.*.use.outline": "writers",
  "agents.*.use.summary": "writers",
  "agents.*.use.tck": "writers",
};

/** Extensions by scheme of a store. */
export const STORE_OWNERS: Owners = { postgres: "cluster", postgresql: "cluster" };

/** Extensions by command, with the commands above it. */
export const COMMAND_OWNERS: Owners = {
  channels: "chat",
  conformance: "conformance",
  registry: "registry",
  run: "workflow",
  simulate: "xiaoyi",
  "store copy": "cluster",
  top: "cluster",
};

/** Why a name is not known, if it is one of a table. */
export function describeMissing(owners: Owners, name: string): string | undefined {
  return Object.hasOwn(owners, name) ? `needs the extension ${owners[name]}` : undefined;
}

/** The same for a store. */
export const describeMissingStore = (url: unknown): string | undefined =>
  typeof url === "string" ? describeMissing(STORE_OWNERS, url.replace(/:.*/s, "")) : undefined;
