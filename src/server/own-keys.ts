import { resolve } from "node:path";
import { loadSigningKey, type SigningKey, type SigningKeyOptions, toPublicJwk } from "../auth/signing-key.ts";
import { JwksDocument } from "./jwks.ts";
import type { PushOptions } from "./push/open-push.ts";

/** What this server signs with, and what it publishes of that. */
export interface OwnKeys {
  readonly card: SigningKey | undefined;
  readonly push: SigningKey | undefined;
  readonly published: JwksDocument;
}

export interface OwnKeyOptions {
  readonly signing?: SigningKeyOptions;
  readonly push?: boolean | PushOptions;
  readonly baseDirectory?: string;
}

/** Read when the server starts, so that a key that cannot be used is noticed then. */
export async function loadOwnKeys({ baseDirectory, push, signing }: OwnKeyOptions): Promise<OwnKeys> {
  const folder = baseDirectory ?? process.cwd();
  const load = (options: SigningKeyOptions | undefined) =>
    options && loadSigningKey({ ...options, keyFile: resolve(folder, options.keyFile) });
  const keys = { card: await load(signing), push: await load(typeof push === "object" ? push.jwt : undefined) };
  const published = new JwksDocument();
  for (const key of Object.values(keys)) if (key !== undefined) published.add(toPublicJwk(key));
  return { ...keys, published };
}
