import { existsSync } from "node:fs";
import { dirname, extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** Root folder of this package, from the sources as well as from the build, whose folders are not the same. */
export const PACKAGE_ROOT = findRoot(dirname(fileURLToPath(import.meta.url)));

/** `src` or `dist`, whichever runs. */
export const CODE_FOLDER = join(
  PACKAGE_ROOT,
  relative(PACKAGE_ROOT, fileURLToPath(import.meta.url)).split(sep)[0] ?? "",
);

/** Extension of the modules that run: `.ts` from the sources, `.js` from the build. */
export const CODE_EXTENSION = extname(import.meta.url);

/** The file of a module of this package: its path below `src`, without extension. Only entries of the build have one there. */
export function ownModule(path: string): string {
  return join(CODE_FOLDER, path + CODE_EXTENSION);
}

function findRoot(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : findRoot(dirname(folder));
}
