/** Why a file cannot be opened, in a sentence for the person who runs the server. */
import { access, constants } from "node:fs/promises";
import { dirname } from "node:path";
import { isCode } from "../../model/system-error.ts";
import { StoreError, type StoreErrorCode } from "../errors.ts";
import { asStoreError } from "./damage.ts";

/** Rejects with the reason if the file, or what SQLite keeps beside it, could not be written. */
export async function checkAccess(file: string): Promise<void> {
  const folder = dirname(file);
  await access(folder, constants.W_OK | constants.X_OK).catch((error: unknown) => {
    throw toOpenError(error, file, folder);
  });
  await access(file, constants.W_OK).catch((error: unknown) => {
    if (!isCode(error, "ENOENT")) throw toOpenError(error, file);
  });
}

/** `path` is what the operating system was asked for. */
export function toOpenError(error: unknown, file: string, path = file): unknown {
  if (error instanceof StoreError) return error;
  if (error instanceof Error && /not a database|SQLITE_NOTADB/i.test(`${error.message} ${codeOf(error)}`)) {
    return new StoreError("not-a-database", `${file} is not a database.`, { cause: error });
  }
  const refused = error instanceof Error ? REFUSED.get(codeOf(error)) : undefined;
  const known = asStoreError(error, file);
  const code = refused?.code ?? (known instanceof StoreError && known.code !== "unavailable" ? known.code : "io");
  const reason = refused?.why(path) ?? (error instanceof Error ? error.message : String(error));
  return new StoreError(code, `The task store ${file} cannot be opened: ${reason}`, { cause: error });
}

const forbidden = {
  code: "read-only",
  why: (path: string) => `this user is not allowed to write to ${path}.`,
} as const;
const REFUSED = new Map<string, { readonly code: StoreErrorCode; why(path: string): string }>([
  ["EROFS", { code: "read-only", why: (path) => `${path} is on a disk that is mounted read-only.` }],
  ["EACCES", forbidden],
  ["EPERM", forbidden],
  ["ENOSPC", { code: "full", why: () => "the disk is full." }],
  ["EDQUOT", { code: "full", why: () => "the disk quota is used up." }],
]);

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}
