import type { Import, Parsed } from "./source.ts";

export interface Manifest {
  readonly dependencies: readonly string[];
}

interface Rule {
  readonly from: readonly string[];
  readonly packages: readonly string[];
}

/**
 * What the product code of each part of the core may import from the others, and which packages. `core/store/contract.ts`
 * stands for that one file. A part that is not listed is a violation: whoever adds one decides where it belongs.
 */
const CORE: Readonly<Record<string, Rule>> = {
  "core/model": { from: [], packages: [] },
  "core/wire": { from: ["core/model"], packages: ["node:", "ws"] },
  "core/dialects": { from: ["core/model", "core/wire"], packages: ["node:"] },
  "core/auth": {
    from: ["core/model", "core/wire"],
    packages: ["node:", "jose", "undici", "ipaddr.js", "openid-client"],
  },
  "core/store": { from: ["core/model", "core/extension"], packages: ["node:", "libsql"] },
  "core/engine": { from: ["core/model", "core/store/contract.ts"], packages: ["node:"] },
  "core/client": {
    from: ["core/model", "core/wire", "core/dialects", "core/auth", "core/extension"],
    packages: ["node:", "@grpc/grpc-js"],
  },
  // The contract has types of all parts, and nothing that runs.
  "core/extension": { from: ["core"], packages: ["commander", "zod"] },
  "core/yaml": { from: ["core/model"], packages: ["yaml", "zod"] },
  "core/agents": {
    from: ["core/model", "core/engine", "core/client"],
    packages: ["node:", "jiti", "zod"],
  },
  "core/server": {
    from: [
      "core/model",
      "core/wire",
      "core/auth",
      "core/dialects",
      "core/store",
      "core/engine",
      "core/client",
      "core/yaml",
      "core/agents",
      "core/extension",
    ],
    packages: ["node:", "uuid", "zod", "pino", "pino-pretty"],
  },
  "core/cli": {
    from: [
      "core/model",
      "core/wire",
      "core/dialects",
      "core/store",
      "core/engine",
      "core/client",
      "core/yaml",
      "core/agents",
      "core/server",
      "core/auth",
      "core/extension",
    ],
    packages: ["node:", "commander", "@clack/prompts", "picocolors", "zod", "yaml"],
  },
};

/** A feature may import the core, and features that it requires. */
const FEATURES: Readonly<Record<string, Rule>> = {
  // Libraries of networks are optional peers, loaded when a channel is opened.
  "features/chat": {
    from: ["core", "features/chat/a2a-lite"],
    packages: [
      "node:",
      "zod",
      "commander",
      "@clack/prompts",
      "picocolors",
      "@larksuiteoapi/node-sdk",
      "@slack/socket-mode",
      "@slack/web-api",
      "@wecom/aibot-node-sdk",
      "@xmpp/client",
      "dingtalk-stream",
      "discord.js",
      "grammy",
      "irc-framework",
      "mqtt",
    ],
  },
  // Pure codecs: what lives is in the runtime beside them.
  "features/chat/a2a-lite": { from: ["core/model", "core/wire", "core/dialects"], packages: ["node:"] },
  "features/cluster": { from: ["core"], packages: ["node:", "pg", "zod", "commander", "picocolors"] },
  // It judges servers from outside, so that nothing of ours may help it to understand them. Carriers only bring bytes.
  "features/conformance": {
    from: [
      "core/model",
      "core/wire",
      "core/client/transport/grpc-carrier.ts",
      "core/client/transport/grpc-channels.ts",
    ],
    packages: ["node:"],
  },
  "features/conformance/cli": {
    from: ["core", "features/conformance"],
    packages: ["node:", "commander", "picocolors"],
  },
  "features/gateway": { from: ["core"], packages: ["node:", "zod"] },
  "features/llm": { from: ["core", "features/writers"], packages: ["node:", "zod"] },
  // Of the conformance suite only what examines a card.
  "features/registry": {
    from: ["core", "features/conformance"],
    packages: ["node:", "zod", "commander", "picocolors"],
  },
  "features/workflow": {
    from: ["core", "features/registry"],
    packages: ["node:", "zod", "commander", "picocolors", "@cfworker/json-schema"],
  },
  "features/writers": { from: ["core"], packages: ["node:", "zod"] },
  "features/xiaoyi": {
    from: ["core", "features/xiaoyi/codec", "features/xiaoyi/simulator"],
    packages: ["node:", "zod", "commander", "picocolors", "yaml"],
  },
  // Pure: what has a clock, a queue or a connection is in `runtime`.
  "features/xiaoyi/codec": { from: ["core/model", "core/wire", "core/dialects"], packages: ["node:"] },
  // It plays somebody else's platform, so that a misunderstanding in our dialects is not repeated here.
  "features/xiaoyi/simulator": { from: ["core/model", "core/wire"], packages: ["node:", "ws"] },
};

const RULES: Readonly<Record<string, Rule>> = { ...CORE, ...FEATURES };

/** Parts of features with a rule of their own. */
const PARTS: readonly string[] = [
  "features/chat/a2a-lite",
  "features/conformance/cli",
  "features/xiaoyi/codec",
  "features/xiaoyi/simulator",
];

/** The doors of the package and the list of features: they may name all of it. */
const ENTRY_RULE: Rule = { from: ["core", "features", "features.ts"], packages: ["node:"] };

/** Those that may name an implementation. */
const COMPOSITION_ROOTS: readonly string[] = ["core/server", "core/client", "core/cli", "features/conformance/cli"];
/** The client names dialects in one file. */
const CLIENT_ROSTER = "core/client/dialects.ts";
/** The command line's own way to stdout and stderr. */
const CLI_OUTPUT = "core/cli/output.ts";

const WITHOUT_AMBIENT: readonly string[] = [
  "core/engine/",
  "core/dialects/",
  "features/chat/a2a-lite/",
  "features/chat/runtime/",
  "features/xiaoyi/shared/",
  "features/xiaoyi/http/",
  "features/xiaoyi/link/",
  "features/xiaoyi/simulator/",
];
const LONGEST_FILE = 400;
const LONGEST_TEST = 600;

/** All that is wrong with the tree, one line each; `folders` are the top folders and whether each has a README. */
export function violationsOf(files: readonly Parsed[], manifest: Manifest): string[] {
  const product = files.filter(({ path }) => !isTestSupport(path));
  const dialects = [...new Set(product.flatMap(({ path }) => dialectOf(path) ?? []))];
  return [
    ...product.flatMap((file) => file.imports.flatMap((one) => importViolations(file, one, manifest))),
    ...product.flatMap((file) => namingViolations(file, dialects)),
    ...product.flatMap(ambientViolations),
    ...files.flatMap(lengthViolations),
    ...files.flatMap(floatingComments),
    ...cycles(fileGraph(product)).map((cycle) => `files import each other: ${cycle}`),
    ...cycles(folderGraph(product)).map((cycle) => `folders import each other: ${cycle}`),
  ];
}

export function foldersWithoutReadme(paths: readonly string[], readmes: ReadonlySet<string>): string[] {
  const folders = new Set(
    paths.filter((path) => path.includes("/")).map((path) => path.split("/").slice(0, 2).join("/")),
  );
  return [...folders].filter((folder) => !readmes.has(folder)).map((folder) => `${folder}: has no README.md`);
}

/** Tests, and what exists for them alone. They may reach anywhere; nothing else may reach them. */
export function isTestSupport(path: string): boolean {
  return (
    path.endsWith(".test.ts") ||
    /(^|\/)(fixtures|testing|suite)\//.test(path) ||
    path.endsWith("contract-suite.ts") ||
    path.endsWith("crash-child.ts")
  );
}

function importViolations({ path }: Parsed, { specifier, target }: Import, manifest: Manifest): string[] {
  const top = partOf(path);
  const allowed = path.includes("/") ? RULES[top] : ENTRY_RULE;
  if (allowed === undefined) return [`${path}: the folder ${top} has no place in the rule`];
  if (target === undefined) return packageViolations(path, specifier, allowed.packages, manifest);
  if (isTestSupport(target)) return [`${path}: imports ${target}, which is for tests`];
  const goal = partOf(target);
  const isAllowed = allowed.from.some((from) => target === from || goal === from || target.startsWith(`${from}/`));
  if (goal !== top && !isAllowed) return [`${path}: ${top} must not import ${target}`];
  return dialectImportViolations(path, target);
}

function dialectImportViolations(path: string, target: string): string[] {
  const named = dialectOf(target);
  const own = dialectOf(path);
  if (named === undefined || named === own) return [];
  if (partOf(path) === "core/dialects") return [`${path}: a dialect must not import another (${target})`];
  if (partOf(path) === "core/client" && path !== CLIENT_ROSTER)
    return [`${path}: only ${CLIENT_ROSTER} names dialects`];
  return COMPOSITION_ROOTS.includes(partOf(path)) || !path.includes("/")
    ? []
    : [`${path}: must not import the dialect ${named}`];
}

function packageViolations(path: string, specifier: string, allowed: readonly string[], manifest: Manifest): string[] {
  if (specifier.startsWith("node:")) {
    return allowed.includes("node:") ? [] : [`${path}: must not import ${specifier}`];
  }
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  if (!allowed.includes(name)) return [`${path}: ${partOf(path)} must not import the package ${name}`];
  return manifest.dependencies.includes(name) ? [] : [`${path}: ${name} is not a dependency of the package`];
}

/** A dialect's name in the core would be a decision by name where one by ability belongs. */
function namingViolations(file: Parsed, dialects: readonly string[]): string[] {
  if (isRoot(file.path)) return [];
  const own = dialectOf(file.path);
  return dialects
    .filter((name) => name !== own && file.literals.some((literal) => mentions(literal, name)))
    .map((name) => `${file.path}: names the dialect ${name}`);
}

const isRoot = (path: string): boolean => COMPOSITION_ROOTS.includes(partOf(path)) || !path.includes("/");

function mentions(literal: string, name: string): boolean {
  return literal === name || literal.split("/").includes(name);
}

function ambientViolations({ path, ambient }: Parsed): string[] {
  const banned = WITHOUT_AMBIENT.some((folder) => path.startsWith(folder))
    ? [...ambient]
    : [...ambient].filter((name) => name === "console");
  if (path === CLI_OUTPUT) return [];
  return banned.map((name) => `${path}: uses ${name}`);
}

function lengthViolations({ path, text }: Parsed): string[] {
  const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  const longest = isTestSupport(path) ? LONGEST_TEST : LONGEST_FILE;
  return lines > longest ? [`${path}: has ${lines} lines, more than ${longest}`] : [];
}

/** A block comment describes the file, at its top, or the declaration below it: with a blank line it describes neither. */
function floatingComments({ path, text }: Parsed): string[] {
  return [...text.matchAll(/^\/\*(?:(?!\*\/).)*\*\/\n\n/gms)]
    .map(({ index }) => text.slice(0, index).split("\n"))
    .filter((before) => before.some((line) => line !== "" && !line.startsWith("#!")))
    .map((before) => `${path}:${before.length}: a comment that belongs to no declaration`);
}

/** It has types of all parts, and nothing that runs. */
const EXTENSION_CONTRACT = "core/extension/contract.ts";

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** Types are gone before anything runs, so only values can wait for each other. */
function fileGraph(files: readonly Parsed[]): Graph {
  const edges = files.map(({ path, imports }) => {
    const targets = imports.filter(({ typeOnly }) => !typeOnly).flatMap(({ target }) => target ?? []);
    return [path, new Set(targets)] as const;
  });
  return new Map(edges);
}

function folderGraph(files: readonly Parsed[]): Graph {
  const graph = new Map<string, Set<string>>();
  for (const { path, imports } of files.filter(({ path }) => path !== EXTENSION_CONTRACT)) {
    const goals = graph.get(partOf(path)) ?? new Set<string>();
    graph.set(partOf(path), goals);
    for (const { target } of imports)
      if (target !== undefined && partOf(target) !== partOf(path)) goals.add(partOf(target));
  }
  return graph;
}

/** One description for each cycle found on a walk through the whole graph. */
function cycles(graph: Graph): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const walk = (node: string, trail: readonly string[]): void => {
    const at = trail.indexOf(node);
    if (at >= 0) {
      found.push([...trail.slice(at), node].join(" -> "));
      return;
    }
    if (done.has(node)) return;
    for (const next of graph.get(node) ?? []) walk(next, [...trail, node]);
    done.add(node);
  };
  for (const node of graph.keys()) walk(node, []);
  return found;
}

/** `core/engine`, `features/chat`; the file itself at the top. */
function partOf(path: string): string {
  if (path === "features/conformance/extension.ts") return "features/conformance/cli";
  return PARTS.find((part) => path.startsWith(`${part}/`)) ?? path.split("/").slice(0, 2).join("/");
}

/** Of the dialects of the core: those of a feature are nowhere else. */
function dialectOf(path: string): string | undefined {
  const [, name] = /^core\/dialects\/([^/]+)\/./.exec(path) ?? [];
  return name === "shared" ? undefined : name;
}
