/** Agents that programs make with the options of a configuration file, for `serve({ agents })`. */

import type { z } from "zod";
import type { AgentDefinition } from "../../agents/define.ts";
import type { Agent } from "../../engine/agent.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMES, type EngineLimits, type EngineTimes } from "../../engine/options.ts";
import { type Fields, isObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { formatPath, toFindings } from "../../yaml/problems.ts";
import { agentKinds, checkAgentRules, processKind } from "./agent-kinds.ts";
import { buildAgent } from "./build-agents.ts";
import { type AgentConfig, toAgentConfig, toOverrides } from "./config.ts";
import { generalKeys, type ParsedAgent } from "./schema.ts";
import { secretsOfAgent } from "./secrets.ts";

/** What every agent may be given beside its kind. */
export type CodeAgentOptions = Partial<
  Pick<
    AgentDefinition,
    "name" | "description" | "skills" | "inputModes" | "concurrency" | "onCrash" | "repeatTextInStatus" | "timeout"
  >
>;

export interface ExecOptions extends CodeAgentOptions {
  /** Input on stdin: the text of the message (default), or one JSON object `{ message, history, task }`. */
  readonly format?: "text" | "json";
  /** Working directory. Default: `baseDirectory` of the server. */
  readonly cwd?: string;
  /** Variables added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Who reads what the program writes to stderr: only the log (default), or also the caller of a run that fails. */
  readonly stderr?: "log" | "caller";
}

/** An agent that starts a program for every turn, without a shell: message on stdin, answer on stdout. */
export function exec(command: readonly string[], options: ExecOptions = {}): Agent {
  const schema = generalKeys.extend(processKind.keys);
  return declareAgent("exec", schema, { ...options, exec: command }, (parsed) => parsed);
}

/** Of the server that an agent becomes part of, by when its name is known. */
interface Surroundings {
  readonly agents: readonly string[];
  readonly folder: string;
  readonly limits: Partial<EngineLimits>;
  readonly times: Partial<EngineTimes>;
  readonly strict: boolean;
  readonly log: Log;
}

const DECLARED = Symbol.for("dragoman.declaredAgent");

interface Declaration {
  /** As in a configuration. */
  readonly values: Fields;
  toConfig(folder: string): AgentConfig;
}

type DeclaredAgent = Agent & { readonly [DECLARED]: Declaration };

export const isDeclared = (agent: Agent): agent is DeclaredAgent => DECLARED in agent;

/**
 * An agent of a kind, made in code. Checked at once, where the mistake is made; built when the server starts, which has
 * its name, its log and its limits. `toValues` gives what a configuration would have; `source` takes the place of what
 * the kind would make of that.
 */
export function declareAgent<S extends z.ZodType>(
  kind: string,
  schema: S,
  options: object,
  toValues: (parsed: z.output<S>) => object,
  source?: unknown,
): Agent {
  const given = withDuration(options);
  const { data, error } = schema.safeParse(given, { jitless: true });
  const findings = (error?.issues ?? []).flatMap((issue) => toFindings(issue, schema, given));
  const problems =
    findings.length > 0 ? findings : checkAgentRules("", given, {}).filter(({ path }) => path.length > 2);
  if (problems.length > 0 || data === undefined) {
    const shown = problems.map(({ message, path }) => {
      const at = formatPath(path.filter((step, index) => !(index === 0 && step === "agents") && step !== ""));
      return at === "" ? message : `${at}: ${message}`;
    });
    throw new TypeError(`${kind}: ${shown.join("\n")}`);
  }
  const values = toValues(data) as ParsedAgent;
  const { name = kind, description = `An agent made by ${kind}(…).` } = values;
  const unbuilt = () => {
    throw new TypeError(`What ${kind}(…) returns runs as an agent of serve({ agents }) only.`);
  };
  const toConfig = (folder: string): AgentConfig =>
    source === undefined ? toAgentConfig(values, folder) : { kind, source, overrides: toOverrides(values) };
  const agent: DeclaredAgent = {
    profile: {
      name,
      description,
      version: "1.0.0",
      skills: [],
      inputModes: [],
      outputModes: [],
      streaming: true,
      extensions: [],
    },
    onCrash: "fail",
    concurrency: Number.POSITIVE_INFINITY,
    timeoutMs: undefined,
    run: unbuilt,
    [DECLARED]: { values, toConfig },
  };
  return agent;
}

/** In code, durations may be milliseconds. */
function withDuration(options: object): object {
  if (!isObject(options)) return options;
  const { timeout } = options as CodeAgentOptions;
  return typeof timeout === "number" ? { ...options, timeout: `${timeout}ms` } : options;
}

/** The agents of a server, with those that programs declared built. Rejects with an error that names the agent. */
export async function buildDeclaredAgents(
  agents: Readonly<Record<string, Agent>>,
  around: Omit<Surroundings, "agents">,
): Promise<Readonly<Record<string, Agent>>> {
  const names = Object.keys(agents);
  const built = names.map(async (name) => {
    const agent = agents[name] as Agent;
    return [
      name,
      isDeclared(agent) ? await build(name, agent[DECLARED], { ...around, agents: names }) : agent,
    ] as const;
  });
  return Object.fromEntries(await Promise.all(built));
}

async function build(name: string, { toConfig, values }: Declaration, around: Surroundings): Promise<Agent> {
  const { folder, log, strict } = around;
  const agent = toConfig(folder);
  const config = {
    agents: new Map(around.agents.map((other) => [other, undefined])),
    folder,
    strict,
    limits: { ...DEFAULT_LIMITS, ...around.limits },
    times: { ...DEFAULT_TIMES, ...around.times },
    server: { watchdogMs: false as const },
  };
  const { check } = agentKinds().get(agent.kind) ?? {};
  const findings = check?.(name, values, Object.fromEntries(config.agents)) ?? [];
  if (findings.length > 0) {
    throw new TypeError(findings.map(({ message, path }) => `${formatPath(path)}: ${message}`).join("\n"));
  }
  return buildAgent(name, agent, config, { log });
}

/** Secrets in the options of declared agents. */
export function secretsOfDeclared(agents: Readonly<Record<string, Agent>>): readonly string[] {
  return Object.values(agents).flatMap((agent) =>
    isDeclared(agent) ? secretsOfAgent(agent[DECLARED].toConfig("")) : [],
  );
}
