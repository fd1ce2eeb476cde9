/** An npm registry on this machine, which has the packages that are installed here: installing needs no network. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { ROOT } from "../built/cli.ts";

export interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

interface Stored {
  readonly manifest: { readonly version: string };
  /** A folder to pack, or a tarball. */
  readonly path: string;
}

/** `tarball` is what it has of this package itself. */
export async function startRegistry(tarball: string): Promise<Registry> {
  const packages = installedPackages();
  packages.set("dragoman", [{ manifest: readManifest(ROOT), path: tarball }]);
  const server = createServer((request, response) => {
    const [name = "", file] = decodeURIComponent(request.url ?? "")
      .slice(1)
      .split("/-/");
    const stored = packages.get(name);
    const wanted = stored?.find(({ manifest }) => file === fileName(name, manifest.version));
    // What is for other platforms only is not there; npm does without, as it is optional.
    if (stored === undefined || (file !== undefined && wanted === undefined)) response.writeHead(404).end("{}");
    else if (wanted === undefined) response.end(describe(name, stored, url()));
    else sendTarball(wanted.path, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url: url(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function installedPackages(): Map<string, Stored[]> {
  const lock: { packages: Record<string, unknown> } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const packages = new Map<string, Stored[]>();
  for (const place of Object.keys(lock.packages)) {
    const name = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(place)?.[1];
    const path = join(ROOT, place);
    if (name === undefined || !existsSync(join(path, "package.json"))) continue;
    packages.set(name, [...(packages.get(name) ?? []), { manifest: readManifest(path), path }]);
  }
  return packages;
}

function readManifest(folder: string): Stored["manifest"] {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function fileName(name: string, version: string): string {
  return `${name.replace(/^.*\//, "")}-${version}.tgz`;
}

function describe(name: string, stored: readonly Stored[], registry: string): string {
  const versions = stored.map(({ manifest }) => {
    const tarball = `${registry}${name}/-/${fileName(name, manifest.version)}`;
    return [manifest.version, { ...manifest, dist: { tarball } }];
  });
  const latest = stored.at(-1)?.manifest.version;
  return JSON.stringify({ name, "dist-tags": { latest }, versions: Object.fromEntries(versions) });
}

function sendTarball(path: string, response: ServerResponse): void {
  if (path.endsWith(".tgz")) {
    response.end(readFileSync(path));
    return;
  }
  const options = ["--use-compress-program=gzip -1", "--exclude=./node_modules", "--transform=s,^\\.,package,"];
  const tar = spawn("tar", ["-cf", "-", ...options, "-C", path, "."], { stdio: ["ignore", "pipe", "ignore"] });
  tar.stdout.pipe(response);
}
