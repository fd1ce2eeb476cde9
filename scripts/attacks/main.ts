/**
 * Attacks a server of its own, built and started as a process on loopback, while an honest caller with credentials calls
 * it every 100 ms: `npm run explore -- attacks [names]`. Each attack is bounded in time and number and runs as a process
 * of low priority. Prints what each has cost the server, at its peak and a second after it, and the honest caller.
 */
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ATTACKS } from "./attacks.ts";
import type { Attack } from "./kit/attack.ts";
import { type HonestRecord, startHonestCaller, warmUp } from "./kit/honest-caller.ts";
import { HONEST_KEY, OTHER_KEY, startVictim, type Victim } from "./kit/victim.ts";

const MIB = 1_024 * 1_024;
/** An attacker may cost this much, and no more. */
const MAX_GROWTH_MIB = 100;
const MAX_DELAY_MS = 1_000;

const ATTACK_SECONDS = 12;
/** Beyond its time, before an attack is ended by force. */
const GRACE_SECONDS = 5;
const WARM_UP_MS = 2_000;
const SETTLE_MS = 1_000;
const SAMPLE_MS = 50;

const USAGE = `Usage: npm run explore -- attacks [--program <dist/cli/main.js>] [names]

Attacks:
${ATTACKS.map(({ name, what }) => `  ${name.padEnd(24)}${what}`).join("\n")}`;

interface Outcome {
  readonly attack: Attack;
  readonly bytes: number;
  /** Of resident memory, at its peak and after the attack. */
  readonly growth: number;
  readonly left: number;
  readonly hasEnded: boolean;
  readonly honest: HonestRecord;
}

/** Returns the exit code. */
export async function runAttacks(given: readonly string[]): Promise<number> {
  const at = given.indexOf("--program");
  const program = resolve(at < 0 ? "dist/cli/main.js" : (given[at + 1] ?? ""));
  const names = at < 0 ? given : given.filter((_, index) => index !== at && index !== at + 1);
  if (names.some((name) => !ATTACKS.some((attack) => attack.name === name))) {
    console.log(USAGE);
    return given.includes("--help") ? 0 : 2;
  }
  const chosen = ATTACKS.filter(({ name }) => names.length === 0 || names.includes(name));
  console.log(formatRow("attack", "sent", "memory", "after", "p50", "max", "calls", "verdict"));
  let failures = 0;
  for (const attack of chosen) {
    const missing = attack.missing?.();
    if (missing !== undefined) {
      console.log(`${attack.name.padEnd(24)}not run: needs ${missing}`);
      continue;
    }
    const outcome = await attackOnce(attack, program);
    if (!isWithinBounds(outcome) || !isMeasured(outcome)) failures++;
    console.log(formatOutcome(outcome));
  }
  return failures === 0 ? 0 : 1;
}

async function attackOnce(attack: Attack, program: string): Promise<Outcome> {
  const victim = await startVictim(attack, program);
  try {
    const calling = { isSecure: victim.isSecure, reconnects: attack.reconnects };
    await warmUp(victim.httpPort, HONEST_KEY, { isSecure: victim.isSecure });
    const honest = startHonestCaller(victim.httpPort, HONEST_KEY, calling);
    await delay(WARM_UP_MS);
    honest.restart();
    const before = victim.memory();
    let most = before;
    const sampling = setInterval(() => {
      most = Math.max(most, victim.memory());
    }, SAMPLE_MS);
    const bytes = await runAttacker(attack, victim);
    await delay(SETTLE_MS);
    clearInterval(sampling);
    const [growth, left] = [most - before, victim.memory() - before];
    return { attack, bytes, growth, left, hasEnded: victim.hasEnded(), honest: honest.stop() };
  } finally {
    await victim.stop();
  }
}

/** Returns the number of bytes sent, NaN if the attack had to be ended. */
async function runAttacker({ name }: Attack, victim: Victim): Promise<number> {
  const { httpPort, grpcPort, ownPort, directory, pid, prepared } = victim;
  const place = { httpPort, grpcPort, ownPort, directory, pid, prepared };
  const target = { ...place, key: OTHER_KEY, seconds: ATTACK_SECONDS };
  const file = resolve(import.meta.dirname, "kit/attacker.ts");
  const command = ["-n", "10", process.execPath, ...process.execArgv, file, name, JSON.stringify(target)];
  const attacker = spawn("nice", command, { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  attacker.stdout.setEncoding("utf8").on("data", (piece: string) => (printed += piece));
  const timer = setTimeout(() => attacker.kill("SIGKILL"), (ATTACK_SECONDS + GRACE_SECONDS) * 1_000);
  await new Promise((resolve) => attacker.once("close", resolve));
  clearTimeout(timer);
  return printed === "" ? Number.NaN : (JSON.parse(printed) as { readonly bytes: number }).bytes;
}

function isWithinBounds({ attack, growth, hasEnded, honest }: Outcome): boolean {
  const most = (attack.maxGrowthMib ?? MAX_GROWTH_MIB) * MIB;
  return !hasEnded && honest.failed === 0 && growth <= most && Math.max(...honest.latencies) <= MAX_DELAY_MS;
}

function formatOutcome(outcome: Outcome): string {
  const { attack, bytes, growth, left, honest } = outcome;
  const sorted = honest.latencies.toSorted((one, other) => one - other);
  const ms = (value = Number.NaN) => `${Math.round(value)} ms`;
  const mib = (value: number) => `${value < 0 ? "" : "+"}${Math.round(value / MIB)} MiB`;
  const calls = `${sorted.length}${honest.failed > 0 ? ` (${honest.failed} failed)` : ""}`;
  return formatRow(
    attack.name,
    `${(bytes / 1e6).toFixed(1)} MB`,
    mib(growth),
    mib(left),
    ms(sorted[Math.floor(sorted.length / 2)]),
    ms(sorted.at(-1)),
    calls,
    toVerdict(outcome),
  );
}

function toVerdict(outcome: Outcome): string {
  if (outcome.hasEnded) return "ENDED";
  if (!isWithinBounds(outcome)) return "EXCEEDED";
  return isMeasured(outcome) ? "ok" : "NOT MEASURED";
}

/** An attack that had to be ended by force may not even have begun, on a busy machine. */
const isMeasured = ({ bytes }: Outcome) => !Number.isNaN(bytes);

function formatRow(attack: string, ...cells: readonly string[]): string {
  return `${attack.padEnd(24)}${cells.map((cell, at) => cell.padEnd(at === 5 ? 18 : 12)).join("")}`.trimEnd();
}
