import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * Secrets and whose they are. Only digests are kept, made with a key that lives as long as the process, and looking one
 * up takes the same time whichever it is and whether or not it is there.
 */
export class Secrets<T> {
  readonly #key = randomBytes(32);
  readonly #entries: readonly { readonly digest: Buffer; readonly value: T }[];

  constructor(entries: readonly (readonly [secret: string, value: T])[]) {
    this.#entries = entries.map(([secret, value]) => ({ digest: this.#digest(secret), value }));
  }

  find(secret: string): T | undefined {
    const digest = this.#digest(secret);
    let found: T | undefined;
    for (const entry of this.#entries) if (timingSafeEqual(entry.digest, digest)) found = entry.value;
    return found;
  }

  #digest(secret: string): Buffer {
    return createHmac("sha256", this.#key).update(secret).digest();
  }
}
