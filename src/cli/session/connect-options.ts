import { readFile } from "node:fs/promises";
import { parsePublicKeys } from "../../auth/signatures/keys.ts";
import type { CardOptions, ExchangeTrace } from "../../client/options.ts";
import { RPC_CODES } from "../../wire/rpc.ts";
import { usageError } from "../errors.ts";
import type { Output } from "../output.ts";
import { safeText } from "../render/text.ts";
import type { Settings } from "../settings/read.ts";

/** Logs requests and responses for `--debug`, with the time since the request. */
export function createExchangeLog(output: Output): (trace: ExchangeTrace) => void {
  let started = performance.now();
  const say = (line: string): void => output.info(output.dim(safeText(line)));
  return (trace) => {
    const sign = trace.direction === "request" ? ">" : "<";
    if (trace.direction === "request") {
      started = performance.now();
      say(`> ${trace.method ?? ""} ${trace.url ?? ""}`);
    } else {
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
  return {
    cardKeys: files.flat(),
    jkuOrigins: jkuOrigin,
    ...(signatures === undefined ? {} : { signatures }),
  };
}

async function readPublicKeys(file: string) {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw usageError(`The key file ${file} of --card-key could not be read${code}.`);
  }
  return parsePublicKeys(text, `The file ${file}`);
}
