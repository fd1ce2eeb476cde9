import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { createSecureContext, type TlsOptions as NodeTlsOptions, type SecureContextOptions } from "node:tls";
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

/**
 * Certificate and key of the server, read again when their files change. Unusable files are ignored after the start.
 */
export class TlsFiles {
  readonly #files: readonly (readonly [name: keyof TlsMaterial, file: string])[];
  readonly #requestCert: boolean;
  readonly #log: Log;
  readonly #takers: ((material: TlsMaterial) => void)[] = [];
  readonly #watchers: FSWatcher[] = [];
  #material: TlsMaterial = {};
  #timer: NodeJS.Timeout | undefined;
  #settling: NodeJS.Timeout | undefined;

  private constructor(options: TlsOptions, folder: string, log: Log) {
    const { cert, key, ca } = options;
    const named = [["cert", cert] as const, ["key", key] as const, ...(ca === undefined ? [] : [["ca", ca] as const])];
    this.#files = named.map(([name, file]) => [name, resolve(folder, file)]);
    this.#requestCert = options.requestClientCertificate === true;
    this.#log = log;
  }

  /** Throws if the files cannot be used. */
  static async open(options: TlsOptions, folder: string, log: Log): Promise<TlsFiles> {
    const files = new TlsFiles(options, folder, log);
    files.#material = await files.#read();
    files.#watch();
    return files;
  }

  /**
   * Options of a Node server. Client certificates are verified by the authenticator, so that the dialect encodes the
   * error.
   */
  get serverOptions(): NodeTlsOptions {
    return {
      ...this.#material,
      requestCert: this.#requestCert,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS,
    };
  }

  /** Registers a callback for new material. Open connections keep the material they were opened with. */
  onChange(take: (material: TlsMaterial) => void): void {
    this.#takers.push(take);
  }

  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#settling);
    for (const watcher of this.#watchers) watcher.close();
  }

  #watch(): void {
    this.#timer = setInterval(() => void this.#look(), POLL_MS);
    this.#timer.unref();
    const names = new Set(this.#files.map(([, file]) => basename(file)));
    // Watches folders: a watch of a file ends when another file replaces it.
    for (const folder of new Set(this.#files.map(([, file]) => dirname(file)))) {
      try {
        const watcher = watch(folder, { persistent: false }, (_event, name) => {
          // Kubernetes mounts symbolic links; what changes is the target of `..data`.
          if (name === null || names.has(name) || name.startsWith("..")) this.#settle();
        });
        watcher.on("error", (error) => this.#log.warn({ err: error, folder }, "A folder can no longer be watched."));
        this.#watchers.push(watcher);
      } catch (error) {
        this.#log.warn({ err: error, folder }, "A folder cannot be watched; certificates are looked at every minute.");
      }
    }
  }

  /** Debounced: certificate and key are written one after the other. */
  #settle(): void {
    if (this.#settling !== undefined) return;
    this.#settling = setTimeout(() => {
      this.#settling = undefined;
      void this.#look();
    }, DEBOUNCE_MS);
    this.#settling.unref();
  }

  async #look(): Promise<void> {
    try {
      const material = await this.#read();
      if (sameMaterial(material, this.#material)) return;
      this.#material = material;
      for (const take of this.#takers) take(material);
      this.#log.info({}, "New certificates are in use.");
    } catch (error) {
      this.#log.error({ err: error }, "New certificates cannot be used; the old ones stay.");
    }
  }

  async #read(): Promise<TlsMaterial> {
    const read = this.#files.map(async ([name, file]) => {
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
}

function sameMaterial(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.cert === other.cert && one.key === other.key && one.ca === other.ca;
}
