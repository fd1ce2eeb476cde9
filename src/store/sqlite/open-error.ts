/** Why a file cannot be opened, in a sentence for the person who runs the server. */
import { StoreError, type StoreErrorCode } from "../errors.ts";
import { asStoreError } from "./damage.ts";

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
  ["ENOENT", { code: "io", why: (path) => `${path} does not exist, or no file can be made there.` }],
  ["ENOSPC", { code: "full", why: () => "the disk is full." }],
  ["EDQUOT", { code: "full", why: () => "the disk quota is used up." }],
]);

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}
