/**
 * Undefined if it is not a URL. Not `URL.canParse`, which in Node 20 is false for URLs with letters such as ü
 * as soon as it is called often.
 */
export function parseUrl(url: string, base?: string): URL | undefined {
  try {
    return new URL(url, base);
  } catch {
    return undefined;
  }
}

export function canParseUrl(url: string, base?: string): boolean {
  return parseUrl(url, base) !== undefined;
}
