/**
 * Builds the package; with `--types` also its declarations, which take most of the time and only those who install the
 * package need. By the bundler's function, because its command greets users of Node 20 with a notice of its own.
 */
import { parseArgs } from "node:util";
import { build } from "tsdown";

const { values } = parseArgs({ options: { types: { type: "boolean" }, "out-dir": { type: "string" } } });
await build({ dts: values.types === true, outDir: values["out-dir"] ?? "dist", logLevel: "error" });
