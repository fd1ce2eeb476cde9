/** Whether something failed for this reason of the operating system, such as `ENOENT`. */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
