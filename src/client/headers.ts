/** Names in lower case, so that a name given in two spellings is one header. */
export function lowerCaseNames(headers: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
