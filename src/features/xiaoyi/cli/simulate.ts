import { randomBytes, randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createInterface, type Interface } from "node:readline";
import { stringify } from "yaml";
import { CommandError, toFailure, usageError } from "../../../core/cli/errors.ts";
import { readChoice, readDuration, readHttpUrl, readInteger, readPort } from "../../../core/cli/flag-values.ts";
import { type Output, printJson } from "../../../core/cli/output.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import {
  type CloudCredentials,
  createSimulator,
  describeViolation,
  isNote,
  PHRASE_NAMES,
  type Phrases,
  type Profile,
  type RegisteredAgent,
  runScenario,
  SCENARIO_NAMES,
  SCENARIOS,
  type ScenarioName,
  type ScenarioReport,
  type Simulator,
  seededRandom,
} from "../simulator/index.ts";
import { PhoneTerminal } from "./phone-terminal.ts";
import { readTraits } from "./platform-traits.ts";

export interface SimulateFlags {
  readonly port: string;
  readonly http?: string;
  readonly stateless?: boolean;
  readonly profile: Profile;
  readonly device: "desktop" | "mobile";
  readonly seed?: string;
  readonly timeout: string;
  readonly script?: string;
  readonly scenario?: readonly string[];
  readonly phrase?: readonly string[];
  readonly trait?: readonly string[];
  readonly disconnects?: string;
  readonly output: "json" | "text";
}

/** Runs the platform on this machine, with a phone to send messages from. */
export async function simulateXiaoyi(output: Output, flags: SimulateFlags): Promise<void> {
  const timeoutMs = readDuration("--timeout", flags.timeout);
  const names = readScenarioNames(flags.scenario ?? []);
  const phrases = Object.fromEntries((flags.phrase ?? []).map(readPhrase));
  rejectUnusedFlags(flags);
  const script = flags.script === undefined ? undefined : await readScript(flags.script);
  const seed = flags.seed === undefined ? randomInt(2 ** 31) : readInteger("--seed", flags.seed, 0, 9_999_999_999);
  const agent = agentFrom(process.env);
  const traits = readTraits(flags.trait ?? []);
  const simulator = await createSimulator({
    ...traits,
    clock: systemClock,
    random: seededRandom(seed),
    port: readPort("--port", flags.port),
    agents: [agent],
    profile: flags.profile,
    device: flags.device,
    silenceMs: timeoutMs,
    http: flags.http === undefined ? undefined : cloudOptions(flags.http, agent, flags),
  });
  try {
    printSetup(output, simulator, flags, seed);
    if (names.length > 0) await runScenarios(names, { output, simulator, flags, phrases, seed, timeoutMs });
    else {
      const terminal = new PhoneTerminal({
        output,
        simulator,
        clock: systemClock,
        json: flags.output === "json",
        timeoutMs,
      });
      if (script !== undefined) await runScript(terminal, simulator, () => script);
      else if (process.stdin.isTTY === true) await runInteractive(output, terminal);
      else await runScript(terminal, simulator, () => createInterface({ input: process.stdin }));
    }
  } finally {
    await simulator.close();
  }
}

const VARIABLES = { agentId: "XIAOYI_AGENT", accessKey: "XIAOYI_AK", secretKey: "XIAOYI_SK", apiKey: "XIAOYI_API_KEY" };

/** Read from the same variables as the configuration, so that both sides agree; otherwise random. */
function agentFrom(environment: Readonly<Record<string, string | undefined>>): RegisteredAgent {
  const given = (name: keyof typeof VARIABLES, bytes: number) =>
    environment[VARIABLES[name]] || randomBytes(bytes).toString("hex");
  return {
    agentId: environment[VARIABLES.agentId] || `agent${randomBytes(12).toString("hex")}`,
    accessKey: given("accessKey", 10),
    secretKey: given("secretKey", 16),
    uid: randomBytes(8).toString("hex"),
    apiKey: given("apiKey", 16),
    apiId: randomBytes(6).toString("hex"),
  };
}

function cloudOptions(url: string, agent: RegisteredAgent, flags: SimulateFlags) {
  readHttpUrl("--http", url);
  const key = process.env[VARIABLES.apiKey];
  const credentials: CloudCredentials =
    key === undefined || key === ""
      ? { kind: "signed", accessKey: agent.accessKey, secretKey: agent.secretKey }
      : { kind: "header", key };
  const mode = flags.stateless === true ? ("stateless" as const) : ("session" as const);
  return { url, credentials, mode };
}

/** Prints the configuration that the agent's side needs. */
function printSetup(output: Output, simulator: Simulator, flags: SimulateFlags, seed: number): void {
  const { accessKey: ak, agentId, apiId, apiKey, secretKey: sk, uid } = simulator.agent;
  const { origin, webhookUrl } = simulator;
  const push = { apiId, url: webhookUrl };
  const [url, second] = simulator.linkUrls;
  const backup = second === undefined ? {} : { backup: { url: second } };
  const entry =
    flags.http === undefined
      ? {
          links: [{ agent: "NAME", agentId, ak, sk, url, ...backup, push, uid, apiKey, uploadUrl: origin }],
        }
      : { http: [{ agent: "NAME", ...httpEntry(simulator, push), upload: { uid, apiKey, url: origin } }] };
  const yaml = stringify({ xiaoyi: { ...entry, files: { allowHosts: [new URL(origin).hostname] } } });
  output.info(["For dragoman.yaml, with the name of your agent:", "", ...yaml.split("\n")]);
  output.info(
    `Set ${VARIABLES.agentId}, ${VARIABLES.accessKey} and ${VARIABLES.secretKey} to keep the same from run to run.`,
  );
  output.info(`Accounts: ${simulator.accountTokenUrl}. Seed: ${seed}.`, "dim");
}

/** Notifications are signed even if the agent is called with an API key. */
function httpEntry({ agent: { accessKey: ak, secretKey: sk } }: Simulator, push: object): object {
  const key = process.env[VARIABLES.apiKey];
  return key ? { apiKey: key, push: { ...push, ak, sk } } : { ak, sk, push };
}

/** Runs lines from a file or a pipe one at a time; fails on broken rules and unanswered messages. */
async function runScript(
  terminal: PhoneTerminal,
  simulator: Simulator,
  open: () => Iterable<string> | Interface,
): Promise<void> {
  await terminal.waitForAgent();
  // Not opened earlier: lines that arrive before they are read are lost.
  for await (const line of open()) if (!(await terminal.handleLine(line, true))) break;
  const count = simulator.violations.filter((violation) => !isNote(violation)).length;
  if (count > 0)
    throw new CommandError("DRAGOMAN_ERR_RULES_BROKEN", `The agent violated rules of the platform: ${count}.`);
  const { unanswered } = terminal;
  if (unanswered > 0) throw new CommandError("DRAGOMAN_ERR_UNANSWERED", `Messages without an answer: ${unanswered}.`);
}

/** Interactive mode: input works while the agent is busy, and an invalid line does not end it. */
function runInteractive(output: Output, terminal: PhoneTerminal): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: "> " });
  output.info("Every line is a message. /help lists what else a phone can do.");
  lines.prompt();
  return new Promise((resolve) => {
    let over = false;
    lines.on("line", async (line) => {
      try {
        if (!(await terminal.handleLine(line, false))) lines.close();
      } catch (error) {
        output.error(toFailure(error).message);
      }
      if (!over) lines.prompt();
    });
    lines.on("SIGINT", () => lines.close());
    lines.on("close", () => {
      over = true;
      resolve();
    });
  });
}

interface ScenarioRun {
  readonly output: Output;
  readonly simulator: Simulator;
  readonly flags: SimulateFlags;
  readonly phrases: Partial<Phrases>;
  readonly seed: number;
  readonly timeoutMs: number;
}

const DEFAULT_DISCONNECTS = 5;
/** A compliant agent backs off after each loss of a connection that lasted less than 10 s. */
const STEADY_MS = 10_500;

async function runScenarios(
  names: readonly ScenarioName[],
  { flags, output, phrases, seed, simulator, timeoutMs }: ScenarioRun,
): Promise<void> {
  const disconnects =
    flags.disconnects === undefined ? DEFAULT_DISCONNECTS : readInteger("--disconnects", flags.disconnects, 1, 9999);
  let failed = 0;
  for (const name of names) {
    output.info(`${name}: ${SCENARIOS[name].about} …`, "dim");
    const random = seededRandom(seed);
    const options = { clock: systemClock, random, phrases, patienceMs: timeoutMs, disconnects, steadyMs: STEADY_MS };
    const report = await runScenario(name, simulator, options);
    if (report.outcome === "failed") failed++;
    if (flags.output === "json") printJson(output, report, "line");
    else output.write(renderScenarioReport(report));
  }
  if (failed > 0) throw new CommandError("DRAGOMAN_ERR_SCENARIO", `${failed} of ${names.length} scenarios failed.`);
}

function readScenarioNames(given: readonly string[]): readonly ScenarioName[] {
  if (given.includes("all")) return SCENARIO_NAMES;
  return given.map((name) => readChoice("--scenario", name, SCENARIO_NAMES));
}

function readPhrase(given: string): readonly [string, string] {
  const at = given.indexOf("=");
  const name = PHRASE_NAMES.find((known) => known === given.slice(0, at));
  if (name === undefined) throw usageError(`--phrase must be NAME=TEXT with one of ${PHRASE_NAMES.join(", ")}.`);
  return [name, given.slice(at + 1)];
}

/** Flags that would have no effect are usage errors. */
function rejectUnusedFlags({ disconnects, http, phrase, scenario, stateless, trait }: SimulateFlags): void {
  if (stateless === true && http === undefined) throw usageError("--stateless requires --http.");
  if (trait !== undefined && http !== undefined) throw usageError("--trait cannot be combined with --http.");
  if (phrase !== undefined && scenario === undefined) throw usageError("--phrase requires --scenario.");
  if (disconnects !== undefined && scenario === undefined) throw usageError("--disconnects requires --scenario.");
}

async function readScript(path: string): Promise<readonly string[]> {
  try {
    return (await readFile(path, "utf8")).split(/\r?\n/);
  } catch {
    throw usageError(`Cannot read the script ${path}.`);
  }
}

const OUTCOME_LABELS = { passed: "passed", failed: "FAILED", "not-shown": "not shown" } as const satisfies Record<
  ScenarioReport["outcome"],
  string
>;

const MAX_VIOLATIONS = 10;

/** One line for the outcome, and one for each broken rule and each note. */
function renderScenarioReport({ name, notes, outcome, source, violations, why }: ScenarioReport): string {
  const cited = source === undefined ? "" : ` [${source}]`;
  const reason = why === undefined ? "" : `: ${safeLine(why)}${cited}`;
  const all = [...violations.map(describeViolation), ...new Set(notes)];
  const lines = all.slice(0, MAX_VIOLATIONS).map((line) => `  ${safeLine(line)}\n`);
  const rest = all.length - lines.length;
  return `${name}: ${OUTCOME_LABELS[outcome]}${reason}\n${lines.join("")}${rest > 0 ? `  and ${rest} more\n` : ""}`;
}
