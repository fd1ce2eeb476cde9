/** As `URL.canParse`, which in Node 20 is false for URLs with letters such as ü as soon as it is called often. */
export function canParseUrl(url: string, base?: string): boolean {
  try {
    new URL(url, base);
    return true;
  } catch {
    return false;
  }
}
