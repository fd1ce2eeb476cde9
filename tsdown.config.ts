import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Rolldown, UserConfig } from "tsdown";

/**
 * Packages whose many files every start would read one by one: `yaml` has seventy, `pino` and what is below it thirty,
 * and `zod` comes with messages in fifty languages. Here only what is used comes along, in few files. They are
 * development dependencies, so that users do not install them besides.
 */
export const BUILT_IN = ["commander", "ipaddr.js", "picocolors", "pino", "yaml", "zod"];
const BELOW_PINO = [
  "@pinojs/redact",
  "atomic-sleep",
  "on-exit-leak-free",
  "pino-std-serializers",
  "quick-format-unescaped",
  "safe-stable-stringify",
  "sonic-boom",
  "thread-stream",
];

/**
 * Puts the licence of every package that was built in, named or below one, into `dist/licenses`, and a list of them into
 * `dist/sbom.cdx.json`: tools that look for known vulnerabilities find them nowhere else.
 */
const licences: Rolldown.Plugin = {
  name: "licences",
  generateBundle(_, bundle) {
    const packages = new Map<string, string>();
    for (const file of Object.values(bundle)) {
      if (file.type !== "chunk") continue;
      for (const id of file.moduleIds) {
        const [, folder, name] = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(id) ?? [];
        if (folder !== undefined && name !== undefined) packages.set(name, folder);
      }
    }
    for (const [name, folder] of packages) {
      const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
      if (licence === undefined) throw new Error(`${name} is built in, but has no licence.`);
      const source = readFileSync(join(folder, licence), "utf8");
      this.emitFile({ type: "asset", fileName: `licenses/${name.replace("/", "-")}.txt`, source });
    }
    if (packages.size > 0) this.emitFile({ type: "asset", fileName: "sbom.cdx.json", source: toSbom(packages) });
  },
};

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** As CycloneDX, without a date, so that the same sources give the same file. */
function toSbom(packages: ReadonlyMap<string, string>): string {
  const readJson = (file: string) => JSON.parse(readFileSync(file, "utf8"));
  const toComponent = ({ name, version, license }: Manifest) => {
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    return { type: "library", "bom-ref": purl, name, version, licenses: [{ license: { id: license } }], purl };
  };
  const components = [...packages]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, folder]) => toComponent(readJson(join(folder, "package.json"))));
  const own = fileURLToPath(new URL("package.json", import.meta.url));
  const metadata = { component: toComponent(readJson(own)) };
  return `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1, metadata, components }, undefined, 2)}\n`;
}

/** Bundled declarations keep imports that none of them uses, for which users would need the types of those packages. */
const unusedImports: Rolldown.Plugin = {
  name: "unused-imports",
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type !== "chunk" || !file.fileName.endsWith(".d.ts")) continue;
      file.code = file.code.replaceAll(/^import \{ (\w+) \} from "[^"]+";\n/gm, (line, name: string) =>
        file.code.split(new RegExp(`\\b${name}\\b`)).length > 2 ? line : "",
      );
    }
  },
};

/**
 * Files that are loaded together are one file: reading hundreds of small ones was most of what starting cost. Threads
 * and programs start with entries, which lie below `dist` as their sources lie below `src`, but for the command's.
 */
export default {
  entry: {
    index: "src/index.ts",
    client: "src/client.ts",
    express: "src/express.ts",
    xiaoyi: "src/features/xiaoyi/index.ts",
    "cli/main": "src/cli.ts",
    // Threads start with a file of their own.
    "core/agents/isolate/thread": "src/core/agents/isolate/thread.ts",
    "core/server/watchdog-thread": "src/core/server/watchdog-thread.ts",
    "core/store/sqlite/thread/write-thread": "src/core/store/sqlite/thread/write-thread.ts",
  },
  format: "esm",
  platform: "node",
  target: "node20",
  dts: true,
  clean: true,
  fixedExtension: false,
  outputOptions: { chunkFileNames: "chunks/[name]-[hash].js" },
  deps: {
    onlyBundle: [...BUILT_IN, ...BELOW_PINO],
    // Its declarations cannot be bundled, and none of ours shows them.
    neverBundle: (id, importer) => id === "ipaddr.js" && importer?.endsWith(".d.ts") === true,
  },
  // What it has for Node are CommonJS modules: they cannot be reduced to what is used, and are slower when bundled.
  alias: { yaml: fileURLToPath(new URL("node_modules/yaml/browser/dist/index.js", import.meta.url)) },
  plugins: [licences, unusedImports],
} satisfies UserConfig;
