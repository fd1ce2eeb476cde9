import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { createSecureContext, type TlsOptions as NodeTlsOptions, type SecureContextOptions } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import type { Log } from "../../model/ports.ts";

/** Certificate files of the server; paths are relative to the folder of the configuration. */
export interface TlsOptions {
  /** Certificate, followed by intermediate certificates. */
  readonly cert: string;
  readonly key: string;
  /** Authorities for client certificates. */
  readonly ca?: string;
  /** Request a client certificate, for a custom check; `auth.mtls` implies it. */
  readonly requestClientCertificate?: boolean;
}

type TlsMaterial = Pick<SecureContextOptions, "cert" | "key" | "ca">;

const DEBOUNCE_MS = 100;
/** For changes without a file event, behind symbolic links for instance. */
const POLL_MS = 60_000;
const HANDSHAKE_MS = 10_000;

export type TlsFiles = Awaited<ReturnType<typeof openTlsFiles>>;

/**
 * Certificate and key of the server, read again when their files change. Throws if the files cannot be used at the
 * start; later such files are ignored.
 */
export async function openTlsFiles(options: TlsOptions, folder: string, log: Log) {
  const files = (["cert", "key", "ca"] as const).flatMap((name) => {
    const file = options[name];
    return file === undefined ? [] : [[name, resolve(folder, file)] as const];
  });
  let material = await readMaterial(files);
  const takers: ((material: TlsMaterial) => void)[] = [];
  const look = async (): Promise<void> => {
    try {
      const read = await readMaterial(files);
      if (isDeepStrictEqual(read, material)) return;
      material = read;
      for (const take of takers) take(read);
      log.info({}, "New certificates are in use.");
    } catch (error) {
      log.error({ err: error }, "New certificates cannot be used; the old ones stay.");
    }
  };
  const timer = setInterval(() => void look(), POLL_MS).unref();
  const stopWatching = watchFiles(new Set(files.map(([, file]) => file)), () => void look(), log);
  return {
    /** Options of a Node server. Client certificates are verified by the authenticator, so that the dialect encodes the error. */
    get serverOptions(): NodeTlsOptions {
      const requestCert = options.requestClientCertificate === true;
      return { ...material, requestCert, rejectUnauthorized: false, handshakeTimeout: HANDSHAKE_MS };
    },
    /** Registers a callback for new material. Open connections keep the material they were opened with. */
    onChange(take: (material: TlsMaterial) => void): void {
      takers.push(take);
    },
    close(): void {
      clearInterval(timer);
      stopWatching();
    },
  };
}

/** Watches folders: a watch of a file ends when another file replaces it. */
function watchFiles(files: ReadonlySet<string>, changed: () => void, log: Log): () => void {
  const names = new Set([...files].map((file) => basename(file)));
  const watchers: FSWatcher[] = [];
  let settling: NodeJS.Timeout | undefined;
  /** Debounced: certificate and key are written one after the other. */
  const settle = (): void => {
    settling ??= setTimeout(() => {
      settling = undefined;
      changed();
    }, DEBOUNCE_MS).unref();
  };
  for (const folder of new Set([...files].map((file) => dirname(file)))) {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        // Kubernetes mounts symbolic links; what changes is the target of `..data`.
        if (name === null || names.has(name) || name.startsWith("..")) settle();
      });
      watcher.on("error", (error) => log.warn({ err: error, folder }, "A folder can no longer be watched."));
      watchers.push(watcher);
    } catch (error) {
      log.warn({ err: error, folder }, "A folder cannot be watched; certificates are looked at every minute.");
    }
  }
  return () => {
    clearTimeout(settling);
    for (const watcher of watchers) watcher.close();
  };
}

async function readMaterial(files: readonly (readonly [name: string, file: string])[]): Promise<TlsMaterial> {
  const read = files.map(async ([name, file]) => {
    try {
      return [name, await readFile(file, "utf8")] as const;
    } catch (error) {
      throw new Error(`tls.${name}: ${file} cannot be read.`, { cause: error });
    }
  });
  const material: TlsMaterial = Object.fromEntries(await Promise.all(read));
  // Detects a key that does not match the certificate here rather than at every handshake.
  createSecureContext(material);
  return material;
}
