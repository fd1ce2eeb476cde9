import { readFile, writeFile } from "node:fs/promises";
import { signCard } from "../../auth/card-signing.ts";
import { loadSigningKey, SIGNING_ALGORITHMS } from "../../auth/signing-key.ts";
import { toSignedForm } from "../../client/dialects.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { cardProblems } from "../card-problems.ts";
import { CommandError, usage } from "../errors.ts";
import type { Output } from "../output.ts";

export interface CardSignFlags {
  readonly key: string;
  readonly kid: string;
  readonly alg?: string;
  readonly jku?: string;
  readonly out?: string;
}

/** The card with its signatures; earlier ones by other keys stay. */
export async function cardSign(output: Output, file: string, flags: CardSignFlags): Promise<void> {
  const alg = SIGNING_ALGORITHMS.find((known) => known === flags.alg);
  if (flags.alg !== undefined && alg === undefined) throw usage(`--alg must be ${SIGNING_ALGORITHMS.join(", ")}.`);
  if (flags.jku !== undefined && !(URL.canParse(flags.jku) && flags.jku.startsWith("https://"))) {
    throw usage("--jku must be an https URL: verifiers take no other.");
  }
  const document = await readCard(file);
  const key = await loadSigningKey({
    keyFile: flags.key,
    kid: flags.kid,
    ...(alg === undefined ? {} : { alg }),
    ...(flags.jku === undefined ? {} : { jku: flags.jku }),
  });
  const form = toSignedForm(document);
  if (form === undefined) throw new CommandError("A2ACLI_ERR_CARD_INVALID", `${file} holds no card of A2A 1.0.`);
  const unsigned = Object.keys(document).filter(
    (name) => name !== "signatures" && !(name in form) && !isEmpty(document[name]),
  );
  if (unsigned.length > 0)
    output.warn(`Not part of a 1.0 card, so not covered by the signature: ${unsigned.join(", ")}.`);
  const signatures = [...othersIn(document, flags.kid), ...signCard(form, key)];
  const text = `${JSON.stringify({ ...document, signatures }, null, 2)}\n`;
  if (flags.out === undefined) output.data(text);
  else await writeFile(flags.out, text);
  output.talk(`Signed with ${key.alg} by the key ${key.kid}.`);
}

async function readCard(file: string): Promise<JsonObject> {
  let document: unknown;
  try {
    document = JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    const code = cause instanceof SyntaxError ? "A2ACLI_ERR_CARD_INVALID" : "A2ACLI_ERR_CARD_NOT_FOUND";
    const what = cause instanceof SyntaxError ? "is no JSON" : "could not be read";
    throw new CommandError(code, `The card file ${file} ${what}.`, null, { cause });
  }
  const problems = cardProblems(document);
  if (problems.length > 0) {
    throw new CommandError("A2ACLI_ERR_CARD_INVALID", `${file} is no valid card of A2A 1.0: ${problems.join(" ")}`);
  }
  return document as JsonObject;
}

/** Signing again with the same key replaces what it signed before. */
function othersIn({ signatures }: JsonObject, kid: string): readonly JsonValue[] {
  return Array.isArray(signatures) ? signatures.filter((signature: JsonValue) => kidOf(signature) !== kid) : [];
}

function kidOf(signature: JsonValue): unknown {
  try {
    const header = (signature as JsonObject).protected;
    return (JSON.parse(Buffer.from(String(header), "base64url").toString("utf8")) as JsonObject).kid;
  } catch {
    return undefined;
  }
}

/** An empty list that 1.0 leaves out is not missed. */
function isEmpty(value: JsonValue | undefined): boolean {
  return value === "" || JSON.stringify(value) === "[]" || JSON.stringify(value) === "{}";
}
