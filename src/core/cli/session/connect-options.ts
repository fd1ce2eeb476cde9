import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { ClientTlsOptions } from "../../auth/login/client-certificate.ts";
import { parsePublicKeys } from "../../auth/signatures/keys.ts";
import type { CardOptions, ExchangeTrace } from "../../client/options.ts";
import type { AgentCard } from "../../model/card.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import { RPC_CODES } from "../../wire/rpc.ts";
import { usageError } from "../errors.ts";
import { ifGiven } from "../flag-values.ts";
import type { Output } from "../output.ts";
import { quoteForShell } from "../render/text.ts";
import type { Settings } from "../settings/read.ts";

/** Logs requests and responses for `--debug`, with the time since the request. */
export function createExchangeLog(output: Output): (trace: ExchangeTrace) => void {
  let started = performance.now();
  const say = (line: string): void => output.info(line, "dim");
  return (trace) => {
    const sign = trace.direction === "request" ? ">" : "<";
    if (trace.direction === "request") {
      started = performance.now();
      say(`> ${trace.method ?? ""} ${trace.url ?? ""}`);
    } else if (trace.status !== undefined) {
      say(`< ${formatStatus(trace)} (${Math.round(performance.now() - started)} ms)`);
    }
    for (const [name, value] of Object.entries(trace.headers)) say(`${sign} ${name}: ${value}`);
    if (trace.body !== undefined && trace.body !== "")
      for (const line of trace.body.split("\n")) say(`${sign} ${line}`);
  };
}

/** gRPC status codes are shown by name. */
function formatStatus({ method, status }: ExchangeTrace): string {
  const name = method === "gRPC" ? Object.entries(RPC_CODES).find(([, code]) => code === status)?.[0] : undefined;
  return `${status ?? ""}${name === undefined ? "" : ` ${name}`}`;
}

type TrustOptions = Pick<CardOptions, "signatures" | "cardKeys" | "jkuOrigins">;

/** The settings about signatures, with the keys read from their files. */
export async function readTrustOptions({ cardKey, jkuOrigin, signatures }: Settings): Promise<TrustOptions> {
  const files = await Promise.all(cardKey.map(readPublicKeys));
  return { cardKeys: files.flat(), jkuOrigins: jkuOrigin, signatures };
}

async function readPublicKeys(file: string) {
  return parsePublicKeys(await readPem(file, "--card-key"), `The file ${file}`);
}

async function readPem(file: string, flag: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw usageError(`The file ${file} of ${flag} could not be read${code}.`);
  }
}

/** The client certificate and the authorities to trust; undefined if none of them is set. */
export async function readTlsOptions({
  caCert,
  clientCert,
  clientKey,
}: Settings): Promise<ClientTlsOptions | undefined> {
  if ((caCert ?? clientCert ?? clientKey) === undefined) return undefined;
  if (clientKey !== undefined && clientCert === undefined) throw usageError("--client-key requires --client-cert.");
  const [ca, cert] = await Promise.all([
    ifGiven(caCert, (file) => readPem(file, "--ca-cert")),
    ifGiven(clientCert, (file) => readPem(file, "--client-cert")),
  ]);
  const key = clientKey === undefined ? cert : await readPem(clientKey, "--client-key");
  const options = { ca, cert, key };
  const problem = findTlsProblem(options);
  if (problem !== undefined) throw usageError(problem);
  return options;
}

/** Node ignores a file without certificates, and names neither the file nor the problem of others. */
function findTlsProblem(options: ClientTlsOptions): string | undefined {
  const { ca = CERTIFICATE, cert = CERTIFICATE, key = PRIVATE_KEY } = options;
  if (!ca.includes(CERTIFICATE)) return "--ca-cert contains no certificate in PEM.";
  if (!cert.includes(CERTIFICATE)) return "--client-cert contains no certificate in PEM.";
  if (!key.includes(PRIVATE_KEY)) return "The private key of the client certificate is missing. Set --client-key.";
  if (key.includes("ENCRYPTED")) return "The private key of the client certificate is encrypted. Decrypt it first.";
  try {
    createSecureContext(options);
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `--client-cert, --client-key and --ca-cert cannot be used together: ${reason}.`;
  }
}

const CERTIFICATE = "BEGIN CERTIFICATE";
const PRIVATE_KEY = "PRIVATE KEY-----";

const OWN_EXTENSIONS = new Set<string>(Object.values(EXTENSIONS));

function requiredExtensions({ capabilities }: AgentCard): readonly string[] {
  return (capabilities.extensions ?? []).filter(({ required }) => required === true).map(({ uri }) => uri);
}

/** Those that are implemented here, of the ones that the card requires, and those that the user names. */
export function declaredExtensions(card: AgentCard, { svcParam }: Settings): readonly string[] {
  const named = svcParam.filter(isExtensionsHeader).flatMap(([, value]) => value.split(",").map((uri) => uri.trim()));
  return [...new Set([...requiredExtensions(card).filter((uri) => OWN_EXTENSIONS.has(uri)), ...named])];
}

/** What the card requires, is not implemented here and was not named by the user, and what to do; else undefined. */
export function undeclaredExtensions(card: AgentCard, settings: Settings): string | undefined {
  const declared = new Set(declaredExtensions(card, settings));
  const missing = requiredExtensions(card).filter((uri) => !declared.has(uri));
  if (missing.length === 0) return undefined;
  const named = missing.join(", ");
  const flag = `--svc-param ${quoteForShell(`A2A-Extensions: ${named}`)}`;
  return `${named}, which is not implemented here and so not declared. If the message has what it asks for, e.g. by --metadata, declare it with ${flag}`;
}

export function isExtensionsHeader([name]: readonly [string, string]): boolean {
  return /^(?:x-)?a2a-extensions$/i.test(name);
}
