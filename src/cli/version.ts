import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../", import.meta.url);

/**
 * How a project names this package: by version, or by its place if this is a checkout, whose version may not have been
 * published. Sources are in a checkout and not in the published package.
 */
export function packageDependency(projectFolder: string): string {
  if (!existsSync(new URL("tsconfig.json", ROOT))) return `^${packageVersion()}`;
  return `file:${relative(projectFolder, fileURLToPath(ROOT)) || "."}`;
}

/** The package this file belongs to; sources and build are equally deep below it. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  const found =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : undefined;
  return typeof found === "string" ? found : "unknown";
}
