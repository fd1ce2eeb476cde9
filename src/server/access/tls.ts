import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { createSecureContext, type TlsOptions as NodeTlsOptions, type SecureContextOptions } from "node:tls";
import type { Log } from "../../model/ports.ts";

/** Files by which the server shows who it is; paths are meant from the folder of the configuration. */
export interface TlsOptions {
  /** Certificate, followed by those between it and a known authority. */
  readonly cert: string;
  readonly key: string;
  /** Authorities for the certificates of clients. */
  readonly ca?: string;
  /** Ask clients for a certificate, for a check of your own; `auth.mtls` does so by itself. */
  readonly requestClientCertificate?: boolean;
}

type TlsMaterial = Pick<SecureContextOptions, "cert" | "key" | "ca">;

const DEBOUNCE_MS = 100;
/** For changes that nobody announces, behind links for instance. */
const POLL_MS = 60_000;
const HANDSHAKE_MS = 10_000;

/** Certificate and key of the server, read again when their files change. What cannot be used is not put to use. */
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

  /** Throws when the files cannot be used. */
  static async open(options: TlsOptions, folder: string, log: Log): Promise<TlsFiles> {
    const files = new TlsFiles(options, folder, log);
    files.#material = await files.#read();
    files.#watch();
    return files;
  }

  /** For a server. Whether a client's certificate is good is for the authenticator to say, in the words of the dialect. */
  get serverOptions(): NodeTlsOptions {
    return {
      ...this.#material,
      requestCert: this.#requestCert,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS,
    };
  }

  /** Tells of new material. Connections that are open keep what they were made with. */
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
    // Folders rather than files: a file that is replaced by another is no longer the one that is watched.
    for (const folder of new Set(this.#files.map(([, file]) => dirname(file)))) {
      try {
        const watcher = watch(folder, { persistent: false }, (_event, name) => {
          // Folders of Kubernetes have links, and what changes is where `..data` leads.
          if (name === null || names.has(name) || name.startsWith("..")) this.#settle();
        });
        watcher.on("error", (error) => this.#log.warn({ err: error, folder }, "A folder can no longer be watched."));
        this.#watchers.push(watcher);
      } catch (error) {
        this.#log.warn({ err: error, folder }, "A folder cannot be watched; certificates are looked at every minute.");
      }
    }
  }

  /** Certificate and key are written one after the other. */
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
    // A key that does not belong to the certificate is noticed here rather than by every caller.
    createSecureContext(material);
    return material;
  }
}

function sameMaterial(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.cert === other.cert && one.key === other.key && one.ca === other.ca;
}
