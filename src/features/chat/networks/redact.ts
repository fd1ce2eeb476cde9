/**
 * What an error of a library says, without the secrets that libraries put into it: some have the whole address of a
 * request, of which a token is a part.
 */
export function describeError(error: unknown, secrets: readonly string[]): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const text = cause instanceof Error ? cause.message || cause.name : String(cause);
  return secrets.reduce((shown, secret) => (secret === "" ? shown : shown.replaceAll(secret, "***")), text);
}
