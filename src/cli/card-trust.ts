import { readFile } from "node:fs/promises";
import { parsePublicKeys } from "../auth/verifying-keys.ts";
import type { CardOptions } from "../client/options.ts";
import { usage } from "./errors.ts";
import type { Settings } from "./read-settings.ts";

export type TrustOptions = Pick<CardOptions, "signatures" | "cardKeys" | "jkuOrigins">;

/** What the settings say about signatures, with the keys read from their files. */
export async function trustOf({ cardKey, jkuOrigin, signatures }: Settings): Promise<TrustOptions> {
  const files = await Promise.all(cardKey.map(readKeys));
  return {
    cardKeys: files.flat(),
    jkuOrigins: jkuOrigin,
    ...(signatures === undefined ? {} : { signatures }),
  };
}

async function readKeys(file: string) {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw usage(`The key file ${file} of --card-key could not be read${code}.`);
  }
  return parsePublicKeys(text, `The file ${file}`);
}
