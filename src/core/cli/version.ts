import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { PACKAGE_ROOT } from "../agents/own-files.ts";

/**
 * The dependency specifier of this package for another project: a version if it was installed from a registry, its
 * path otherwise, since an unpublished version would not be found or would be someone else's package. How it was
 * installed is read from the project that contains it; a clone or a global installation has none.
 */
export function packageDependency(projectFolder: string): string {
  const root = `${PACKAGE_ROOT}${sep}`;
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

/** The version of the package this file belongs to. */
export function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(join(PACKAGE_ROOT, "package.json"), "utf8"));
  return version;
}
