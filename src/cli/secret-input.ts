/** Secrets come from the environment, standard input or a prompt, never from an argument that others can see. */
import { CommandError, usage } from "./errors.ts";
import type { Output } from "./output.ts";
import { readStandardInput } from "./standard-input.ts";

export interface SecretSource {
  /** What it is, for the question and the error. */
  readonly what: string;
  readonly variable: string;
  /** The flag that says that it comes on standard input, and whether it was given. */
  readonly flag: string;
  readonly fromStandardInput: boolean;
  /** Already given by a setting. */
  readonly given?: string | undefined;
}

/** Undefined when nobody gave it and nobody can be asked. */
export async function findSecret(output: Output, source: SecretSource): Promise<string | undefined> {
  const secret = source.fromStandardInput
    ? (await readStandardInput()).toString("utf8").replace(/\r?\n$/, "")
    : (source.given ?? process.env[source.variable] ?? (await askFor(output, source.what, "secret")));
  if (secret === undefined || secret === "") return undefined;
  output.hide(secret);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no header may hold them
  if (/[\u0000-\u001f\u007f]/.test(secret)) throw usage(`The ${source.what} is not one line of text.`);
  return secret;
}

export async function needSecret(output: Output, source: SecretSource): Promise<string> {
  const secret = await findSecret(output, source);
  if (secret !== undefined) return secret;
  throw new CommandError(
    "A2ACLI_ERR_CREDENTIALS_MISSING",
    `The ${source.what} is missing.`,
    `Give it in ${source.variable}, or on standard input with ${source.flag}.`,
  );
}

/** Undefined where there is no terminal to ask at. */
export async function askFor(output: Output, what: string, kind: "secret" | "text"): Promise<string | undefined> {
  if (process.stdin.isTTY !== true || !output.talkIsTerminal) return undefined;
  const { isCancel, password, text } = await import("@clack/prompts");
  const message = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const options = { message, output: process.stderr };
  const answer = kind === "secret" ? await password(options) : await text(options);
  if (isCancel(answer)) throw new CommandError("DRAGOMAN_ERR_INTERRUPTED", "Interrupted.");
  return answer;
}
