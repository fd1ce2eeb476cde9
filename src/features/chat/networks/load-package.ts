/** The package that a network needs is not installed. */
export class MissingPackageError extends Error {
  override readonly name = "MissingPackageError";

  constructor(network: string, packages: readonly string[], options?: ErrorOptions) {
    super(`${network} needs ${packages.join(" and ")}. Install with: npm install ${packages.join(" ")}`, options);
  }
}

/** Imports the library of a network. `load` has to name the package literally, so that bundlers see it. */
export async function loadPackage<T>(
  network: { readonly title: string; readonly packages: readonly string[] },
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    throw new MissingPackageError(network.title, network.packages, { cause: error });
  }
}

/** Packages of a network that cannot be imported. */
export function missingPackages({ packages }: { readonly packages: readonly string[] }): readonly string[] {
  return packages.filter((name) => {
    try {
      import.meta.resolve(name);
      return false;
    } catch {
      return true;
    }
  });
}
