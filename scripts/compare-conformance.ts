/**
 * Adds a report of `dragoman conformance --report json=FILE` to the comparison in `docs/conformance.md`, or replaces it:
 * `npx tsx scripts/compare-conformance.ts "NAME VERSION" "what was run" FILE`.
 */

import { readFile, writeFile } from "node:fs/promises";
import { type Comparison, summarize } from "../test/conformance/comparison.ts";

const [server, about, file] = process.argv.slice(2);
if (server === undefined || about === undefined || file === undefined) {
  throw new Error('Usage: compare-conformance.ts "NAME VERSION" "what was run" FILE');
}
const place = new URL("../test/conformance/compared.json", import.meta.url);
const comparison = JSON.parse(await readFile(place, "utf8")) as Comparison;
const row = summarize(server, about, JSON.parse(await readFile(file, "utf8")));
const others = comparison.servers.filter((other) => other.server !== server);
const servers = [...others, row];
await writeFile(place, `${JSON.stringify({ ...comparison, servers }, undefined, 2)}\n`);
