import { randomBytes, randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createInterface, type Interface } from "node:readline";
import { stringify } from "yaml";
import { systemClock } from "../../server/node-ports.ts";
import {
  type CloudCredentials,
  createSimulator,
  isNote,
  PHRASE_NAMES,
  type Phrases,
  type Profile,
  type RegisteredAgent,
  runScenario,
  SCENARIO_NAMES,
  SCENARIOS,
  type ScenarioName,
  type Simulator,
  seededRandom,
} from "../../simulator/index.ts";
import { parseDuration } from "../duration.ts";
import { CommandError, toFailure, usage } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { PhoneTerminal } from "../phone-terminal.ts";
import { readTraits } from "../platform-traits.ts";
import { describeReport } from "../render-scenario.ts";
import { readPort } from "./serve.ts";

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

/** The platform on this machine, with a phone to talk through. */
export async function simulateXiaoyi(output: Output, flags: SimulateFlags): Promise<void> {
  const timeoutMs = readTimeout(flags.timeout);
  const names = readNames(flags.scenario ?? []);
  const phrases = Object.fromEntries((flags.phrase ?? []).map(readPhrase));
  refuseIdleFlags(flags);
  const script = flags.script === undefined ? undefined : await readScript(flags.script);
  const seed = flags.seed === undefined ? randomInt(2 ** 31) : readSeed(flags.seed);
  const agent = agentFrom(process.env);
  const traits = readTraits(flags.trait ?? []);
  const simulator = await createSimulator({
    ...traits,
    clock: systemClock,
    random: seededRandom(seed),
    port: readPort("--port", flags.port, ""),
    agents: [agent],
    profile: flags.profile,
    device: flags.device,
    silenceMs: timeoutMs,
    ...(flags.http === undefined ? {} : { http: cloudOptions(flags.http, agent, flags) }),
  });
  try {
    introduce(output, simulator, flags, seed);
    if (names.length > 0) await playAll(names, { output, simulator, flags, phrases, seed, timeoutMs });
    else await converse(output, simulator, flags, timeoutMs, script);
  } finally {
    await simulator.close();
  }
}

async function converse(
  output: Output,
  simulator: Simulator,
  flags: SimulateFlags,
  timeoutMs: number,
  script: readonly string[] | undefined,
): Promise<void> {
  const json = flags.output === "json";
  const terminal = new PhoneTerminal({ output, simulator, clock: systemClock, json, timeoutMs });
  if (script !== undefined) await recite(terminal, simulator, () => script);
  else if (process.stdin.isTTY === true) await talk(output, terminal);
  else await recite(terminal, simulator, () => createInterface({ input: process.stdin }));
}

const VARIABLES = { agentId: "XIAOYI_AGENT", accessKey: "XIAOYI_AK", secretKey: "XIAOYI_SK", apiKey: "XIAOYI_API_KEY" };

/** Taken from the variables that a configuration takes them from, so that both sides agree; else made up. */
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
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw usage(`--http must be an http or https URL, not "${url}".`);
  const key = process.env[VARIABLES.apiKey];
  const credentials: CloudCredentials =
    key === undefined || key === ""
      ? { kind: "signed", accessKey: agent.accessKey, secretKey: agent.secretKey }
      : { kind: "header", key };
  const mode = flags.stateless === true ? ("stateless" as const) : ("session" as const);
  return { url, credentials, mode };
}

/** What the other side needs to be told. */
function introduce(output: Output, simulator: Simulator, flags: SimulateFlags, seed: number): void {
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
      : { http: [{ agent: "NAME", ...calledEntry(simulator, push), upload: { uid, apiKey, url: origin } }] };
  output.talk("For dragoman.yaml, with the name of your agent:\n");
  output.talk(stringify({ xiaoyi: { ...entry, files: { allowHosts: [new URL(origin).hostname] } } }));
  output.talk(
    `Set ${VARIABLES.agentId}, ${VARIABLES.accessKey} and ${VARIABLES.secretKey} to keep the same from run to run.`,
  );
  output.talk(output.dim(`Accounts: ${simulator.accountTokenUrl}. Seed: ${seed}.`));
}

/** Notifications are signed, also where the agent is called with a key. */
function calledEntry({ agent: { accessKey: ak, secretKey: sk } }: Simulator, push: object): object {
  const key = process.env[VARIABLES.apiKey];
  return key ? { apiKey: key, push: { ...push, ak, sk } } : { ak, sk, push };
}

/** Lines from a file or a pipe, one after the other; broken rules and unanswered messages make it a failure. */
async function recite(
  terminal: PhoneTerminal,
  simulator: Simulator,
  open: () => Iterable<string> | Interface,
): Promise<void> {
  await terminal.meet();
  // Opened no earlier: lines that nobody waits for are lost.
  for await (const line of open()) if (!(await terminal.follow(line, true))) break;
  const count = simulator.violations.filter((violation) => !isNote(violation)).length;
  if (count > 0)
    throw new CommandError("DRAGOMAN_ERR_RULES_BROKEN", `The agent broke rules of the platform, ${count} times.`);
  const { unanswered } = terminal;
  if (unanswered > 0) throw new CommandError("DRAGOMAN_ERR_UNANSWERED", `Messages without an answer: ${unanswered}.`);
}

/** A person at a terminal: what is typed works while the agent is busy, and a mistake is no reason to leave. */
function talk(output: Output, terminal: PhoneTerminal): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: "> " });
  output.talk("Every line is a message. /help lists what else a phone can do.");
  lines.prompt();
  return new Promise((resolve) => {
    let over = false;
    lines.on("line", async (line) => {
      try {
        if (!(await terminal.follow(line, false))) lines.close();
      } catch (error) {
        output.talk(`${output.red("Error:")} ${toFailure(error).message}`);
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

interface Play {
  readonly output: Output;
  readonly simulator: Simulator;
  readonly flags: SimulateFlags;
  readonly phrases: Partial<Phrases>;
  readonly seed: number;
  readonly timeoutMs: number;
}

/** Losses of a connection, unless told otherwise. */
const FEW = 5;
/** An agent that keeps to the rules waits longer after each loss of a connection that held for less than 10 s. */
const STEADY_MS = 10_500;

async function playAll(
  names: readonly ScenarioName[],
  { flags, output, phrases, seed, simulator, timeoutMs }: Play,
): Promise<void> {
  const disconnects = flags.disconnects === undefined ? FEW : readCount(flags.disconnects);
  let failed = 0;
  for (const name of names) {
    output.talk(output.dim(`${name}: ${SCENARIOS[name].about} …`));
    const random = seededRandom(seed);
    const options = { clock: systemClock, random, phrases, patienceMs: timeoutMs, disconnects, steadyMs: STEADY_MS };
    const report = await runScenario(name, simulator, options);
    if (report.outcome === "failed") failed++;
    if (flags.output === "json") printJson(output, report, "line");
    else output.data(describeReport(report));
  }
  if (failed > 0) throw new CommandError("DRAGOMAN_ERR_SCENARIO", `${failed} of ${names.length} scenarios failed.`);
}

function readNames(given: readonly string[]): readonly ScenarioName[] {
  if (given.includes("all")) return SCENARIO_NAMES;
  return given.map((name) => {
    const known = SCENARIO_NAMES.find((candidate) => candidate === name);
    if (known === undefined)
      throw usage(`There is no scenario ${name}.`, `There are ${SCENARIO_NAMES.join(", ")}, and all.`);
    return known;
  });
}

function readPhrase(given: string): readonly [string, string] {
  const at = given.indexOf("=");
  const name = PHRASE_NAMES.find((known) => known === given.slice(0, at));
  if (name === undefined) throw usage(`--phrase must be NAME=TEXT with one of ${PHRASE_NAMES.join(", ")}.`);
  return [name, given.slice(at + 1)];
}

/** What would have no effect is a mistake. */
function refuseIdleFlags({ disconnects, http, phrase, scenario, stateless, trait }: SimulateFlags): void {
  if (stateless === true && http === undefined) throw usage("--stateless goes with --http.");
  if (trait !== undefined && http !== undefined) throw usage("--trait is for agents that dial, not for --http.");
  if (phrase !== undefined && scenario === undefined) throw usage("--phrase goes with --scenario.");
  if (disconnects !== undefined && scenario === undefined) throw usage("--disconnects goes with --scenario.");
}

async function readScript(path: string): Promise<readonly string[]> {
  try {
    return (await readFile(path, "utf8")).split(/\r?\n/);
  } catch {
    throw usage(`--script: ${path} cannot be read.`);
  }
}

function readTimeout(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds === undefined || milliseconds === 0)
    throw usage(`--timeout must be a duration such as 30s, not "${text}".`);
  return milliseconds;
}

function readCount(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw usage(`--disconnects must be a number from 1 to 9999, not "${text}".`);
}

function readSeed(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw usage(`--seed must be a whole number, not "${text}".`);
}
