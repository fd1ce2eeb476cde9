import type { Import, Parsed } from "./source.ts";

export interface Manifest {
  readonly dependencies: readonly string[];
}

/**
 * What the product code of each top folder may import from the others, and which packages. `store/contract.ts` stands
 * for that one file. A folder that is not listed is a violation: whoever adds one decides where it belongs.
 */
const FOLDERS: Readonly<Record<string, { readonly from: readonly string[]; readonly packages: readonly string[] }>> = {
  model: { from: [], packages: [] },
  wire: { from: ["model"], packages: ["node:", "ws"] },
  dialects: { from: ["model", "wire"], packages: ["node:"] },
  // Libraries of networks are optional peers, loaded when a channel is opened.
  channels: {
    from: ["model", "wire"],
    packages: [
      "node:",
      "zod",
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
  auth: { from: ["model", "wire"], packages: ["node:", "jose", "undici", "ipaddr.js", "openid-client"] },
  store: { from: ["model"], packages: ["node:", "libsql", "pg"] },
  engine: { from: ["model", "store/contract.ts"], packages: ["node:"] },
  // Chat networks only where dialects are named, and only if a participant of one is called.
  client: { from: ["model", "wire", "dialects", "auth", "channels/networks.ts"], packages: ["node:", "@grpc/grpc-js"] },
  writers: { from: [], packages: [] },
  yaml: { from: ["model"], packages: ["yaml", "zod"] },
  workflow: { from: ["model", "yaml"], packages: ["node:", "zod", "@cfworker/json-schema"] },
  // Of the wire only the reader of server-sent events, which language models send.
  agents: {
    from: ["model", "wire/sse.ts", "engine", "client", "workflow", "writers"],
    packages: ["node:", "jiti", "zod"],
  },
  // Of the conformance suite only what examines a card.
  registry: {
    from: ["model", "wire", "auth", "client", "conformance/check.ts", "conformance/checks/card.ts"],
    packages: ["node:"],
  },
  server: {
    from: [
      "model",
      "wire",
      "channels",
      "auth",
      "dialects",
      "store",
      "engine",
      "client",
      "yaml",
      "workflow",
      "agents",
      "registry",
    ],
    packages: ["node:", "uuid", "zod", "pino", "pino-pretty"],
  },
  // It judges servers from outside, so that nothing of ours may help it to understand them. Carriers only bring bytes.
  conformance: {
    from: ["model", "wire", "client/transport/grpc-carrier.ts", "client/transport/grpc-channels.ts"],
    packages: ["node:"],
  },
  // It plays somebody else's platform, so that a misunderstanding in our dialects is not repeated here.
  simulator: { from: ["model", "wire"], packages: ["node:", "ws"] },
  cli: {
    from: [
      "model",
      "wire",
      "channels",
      "dialects",
      "store",
      "engine",
      "client",
      "yaml",
      "workflow",
      "agents",
      "server",
      "conformance",
      "simulator",
      "auth",
    ],
    packages: ["node:", "commander", "@clack/prompts", "picocolors", "zod", "yaml"],
  },
  "index.ts": { from: ["model", "auth", "engine", "workflow", "agents", "client", "server"], packages: [] },
  // A door for agent authors, like index.ts.
  "xiaoyi.ts": { from: ["model", "dialects"], packages: [] },
};

/** Those that may name an implementation. */
const COMPOSITION_ROOTS: readonly string[] = ["server", "client", "cli", "index.ts", "xiaoyi.ts"];
/** The client names dialects in one file. */
const CLIENT_ROSTER = "client/dialects.ts";
/** The command line's own way to stdout and stderr. */
const CLI_OUTPUT = "cli/output.ts";

const WITHOUT_AMBIENT: readonly string[] = ["engine", "dialects", "simulator"];
const LONGEST_FILE = 400;
const LONGEST_TEST = 600;

/** All that is wrong with the tree, one line each; `folders` are the top folders and whether each has a README. */
export function violationsOf(files: readonly Parsed[], manifest: Manifest): string[] {
  const product = files.filter(({ path }) => !isTestSupport(path));
  const folders = [...new Set(product.flatMap(({ path }) => dialectOf(path) ?? []))];
  const dialects = folders.filter((folder) => !folders.some((other) => isFamilyOf(folder, other)));
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
  const folders = new Set(paths.filter((path) => path.includes("/")).map(topOf));
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
  const top = topOf(path);
  const allowed = FOLDERS[top];
  if (allowed === undefined) return [`${path}: the folder ${top} has no place in the rule`];
  if (target === undefined) return packageViolations(path, specifier, allowed.packages, manifest);
  if (isTestSupport(target)) return [`${path}: imports ${target}, which is for tests`];
  const goal = topOf(target);
  if (goal !== top && !allowed.from.includes(goal) && !allowed.from.includes(target)) {
    return [`${path}: ${top} must not import ${target}`];
  }
  if (top === "client" && goal === "channels" && path !== CLIENT_ROSTER) {
    return [`${path}: only ${CLIENT_ROSTER} names chat networks`];
  }
  return dialectImportViolations(path, target);
}

function dialectImportViolations(path: string, target: string): string[] {
  const named = dialectOf(target);
  const own = dialectOf(path);
  if (named === undefined || named === own) return [];
  if (own !== undefined && isFamilyOf(named, own)) return [];
  if (topOf(path) === "dialects") return [`${path}: a dialect must not import another (${target})`];
  if (topOf(path) === "client" && path !== CLIENT_ROSTER) return [`${path}: only ${CLIENT_ROSTER} names dialects`];
  return COMPOSITION_ROOTS.includes(topOf(path)) ? [] : [`${path}: must not import the dialect ${named}`];
}

function packageViolations(path: string, specifier: string, allowed: readonly string[], manifest: Manifest): string[] {
  if (specifier.startsWith("node:")) {
    return allowed.includes("node:") ? [] : [`${path}: must not import ${specifier}`];
  }
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  if (!allowed.includes(name)) return [`${path}: ${topOf(path)} must not import the package ${name}`];
  return manifest.dependencies.includes(name) ? [] : [`${path}: ${name} is not a dependency of the package`];
}

/** A dialect's name in the core would be a decision by name where one by ability belongs. */
function namingViolations(file: Parsed, dialects: readonly string[]): string[] {
  if (COMPOSITION_ROOTS.includes(topOf(file.path))) return [];
  const own = dialectOf(file.path);
  return dialects
    .filter((name) => name !== own && file.literals.some((literal) => mentions(literal, name)))
    .map((name) => `${file.path}: names the dialect ${name}`);
}

function mentions(literal: string, name: string): boolean {
  return literal === name || literal.split("/").includes(name);
}

function ambientViolations({ path, ambient }: Parsed): string[] {
  const banned = WITHOUT_AMBIENT.includes(topOf(path))
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
  for (const { path, imports } of files) {
    const goals = graph.get(topOf(path)) ?? new Set<string>();
    graph.set(topOf(path), goals);
    for (const { target } of imports)
      if (target !== undefined && topOf(target) !== topOf(path)) goals.add(topOf(target));
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

function topOf(path: string): string {
  return path.split("/")[0] as string;
}

/** `dialects/<family>/` is the vocabulary that the dialects `<family>-…` share, and no dialect itself. */
function isFamilyOf(family: string, dialect: string): boolean {
  return dialect.startsWith(`${family}-`);
}

function dialectOf(path: string): string | undefined {
  const [top, folder, file] = path.split("/");
  return top === "dialects" && file !== undefined && folder !== "shared" ? folder : undefined;
}
