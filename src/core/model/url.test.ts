import { expect, test } from "vitest";
import { canParseUrl } from "./url.ts";

test("a URL can be parsed however often that is asked", () => {
  let failures = 0;
  for (let asked = 0; asked < 50_000; asked++) if (!canParseUrl("https://münchen.example/ü")) failures++;
  expect(failures).toBe(0);
});

test.each([
  ["https://example.com", undefined, true],
  ["example.com", undefined, false],
  ["https://", undefined, false],
  ["/path", "https://example.com", true],
  ["/path", "example.com", false],
])("%s, relative to %s: %s", (url, base, expected) => {
  expect(canParseUrl(url, base)).toBe(expected);
});
