import { readFileSync } from "node:fs";

/** The package this file belongs to; sources and build are equally deep below it. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const found =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : undefined;
  return typeof found === "string" ? found : "unknown";
}
