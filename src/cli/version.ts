import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../", import.meta.url);

/**
 * How another project names this package: by version if it was installed from a registry, and otherwise by its place,
 * since a version that is not published would not be found, or be somebody else's. How it was installed is what the
 * project it is in asked for; without one (a clone, a global installation) nothing tells.
 */
export function packageDependency(projectFolder: string): string {
  const root = fileURLToPath(ROOT);
  const host = root.slice(0, Math.max(0, root.indexOf(`${sep}node_modules${sep}`)));
  const asked = host === "" ? undefined : dependencyOf(host);
  if (asked !== undefined && (asked.startsWith("npm:") || !/[:/]/.test(asked))) return `^${packageVersion()}`;
  if (asked !== undefined && !/^(file|link|portal|workspace):/.test(asked)) return asked;
  const place = asked === undefined ? root : resolve(host, asked.replace(/^\w+:/, ""));
  return `file:${relative(projectFolder, existsSync(place) ? place : root) || "."}`;
}

function dependencyOf(host: string): string | undefined {
  const file = join(host, "package.json");
  if (!existsSync(file)) return undefined;
  const { dependencies, devDependencies }: Record<string, Record<string, string> | undefined> = JSON.parse(
    readFileSync(file, "utf8"),
  );
  return dependencies?.dragoman ?? devDependencies?.dragoman;
}

/** The package this file belongs to; sources and build are equally deep below it. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  const found =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : undefined;
  return typeof found === "string" ? found : "unknown";
}
