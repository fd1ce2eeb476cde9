/**
 * Builds the package; with `--types` also its declarations, which take most of the time and only those who install the
 * package need. By the bundler's function, because its command greets users of Node 20 with a notice of its own.
 */
import { build } from "tsdown";

await build({ dts: process.argv.includes("--types"), logLevel: "error" });
