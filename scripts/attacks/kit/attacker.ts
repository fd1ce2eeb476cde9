/** The process of one attack, started by main.ts: `attacker.ts <name> <target as JSON>`. Prints the bytes sent. */
import { ATTACKS } from "../attacks.ts";
import type { Target } from "./attack.ts";

const [name, target = "{}"] = process.argv.slice(2);
let bytes = 0;
const attack = ATTACKS.find((one) => one.name === name);
const given = JSON.parse(target) as Omit<Target, "sent">;
// Refused and reset connections are what a defended server answers with.
process.on("uncaughtException", () => {});
process.on("exit", () => process.stdout.write(JSON.stringify({ bytes })));
const sent = (more: number): void => {
  bytes += more;
};
await attack?.run({ ...given, sent });
process.exit(0);
