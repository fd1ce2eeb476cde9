/** Agents that programs make with the options of a configuration file, for `serve({ agents })`. */

import type { z } from "zod";
import { llm as llmSchema } from "../../../features/llm/config.ts";
import {
  workflow as buildWorkflow,
  compileDefinition,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from "../../../features/workflow/definition/builder.ts";
import type { Workflow } from "../../../features/workflow/definition/plan.ts";
import type { AgentDefinition } from "../../agents/define.ts";
import type { Agent } from "../../engine/agent.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMES, type EngineLimits, type EngineTimes } from "../../engine/options.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { formatPath, toFindings } from "../../yaml/problems.ts";
import { buildAgent } from "./build-agents.ts";
import { type AgentConfig, toAgentConfig } from "./config.ts";
import { checkAgentRules, checkCalledAgents } from "./rules.ts";
import { agentSchema, type ParsedAgent } from "./schema.ts";
import { secretsOfSource } from "./secrets.ts";

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

export interface RemoteOptions extends CodeAgentOptions {
  /** Dialect in which the agent is called, e.g. `a2a-v03`. Default: as its card says. */
  readonly dialect?: string;
  /** Binding over which it is called. Default: as its card says. */
  readonly binding?: "JSONRPC" | "HTTP+JSON" | "GRPC";
  /** How to log in there: one of `bearer`, `apiKey`, `basic`, `oauth`, and `ak` with `sk`. */
  readonly credentials?: Login;
  /** Other origins that its card may refer to; they also receive the credentials, and may be in private networks. */
  readonly origins?: readonly string[];
  /** False to poll its tasks instead of streaming them. Default: as its card says. */
  readonly streaming?: boolean;
}

/** Not inferred from the schema, whose types would become part of the public ones. */
interface Login {
  /** A token, sent as `Authorization: Bearer`. */
  readonly bearer?: string;
  /** An API key, sent where the card of the agent expects it. Default: the header `X-API-Key`. */
  readonly apiKey?: string;
  /** With `apiKey`: header for the key, whatever the card says. */
  readonly header?: string;
  /** User and password, sent by HTTP Basic. */
  readonly basic?: { readonly user: string; readonly password: string };
  /** Tokens that are requested with client credentials, at `tokenUrl` or as the `issuer` says. */
  readonly oauth?: {
    readonly tokenUrl?: string;
    readonly issuer?: string;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly scopes?: readonly string[];
  };
  /** With `sk`: id of the key that signs requests, in dialects with signed requests. */
  readonly ak?: string;
  /** With `ak`: the key itself, which is never sent. */
  readonly sk?: string;
}

export interface LlmAgentOptions extends CodeAgentOptions {
  /** Address of an OpenAI-compatible API, up to and without `/chat/completions`. */
  readonly baseUrl: string;
  /** Name of the model, as the API knows it. */
  readonly model: string;
  /** Key for the API, sent as a bearer token. */
  readonly apiKey?: string;
  /** Instructions that precede every conversation. */
  readonly system?: string;
  /** Names of agents of the same server that the model may call as tools. */
  readonly agents?: readonly string[];
  /** Calls of agents for one message. Default: 16. */
  readonly maxToolCalls?: number;
  /** Tokens that the model may write for one message. Default: the model's own limit. */
  readonly maxTokens?: number;
  /** Tokens of a request, estimated; as much of the conversation is sent as fits. Default: 8,000. */
  readonly maxContextTokens?: number;
  /** Whether the model accepts images. Default: false. */
  readonly images?: boolean;
  /** Tries of a request that fails before anything was received. Default: 4. */
  readonly attempts?: number;
  /** Longest wait for the next part of the answer, such as `30s`. Default: `2m`. */
  readonly idleTimeout?: string;
  /** Further members of every request, such as `temperature`. */
  readonly body?: JsonObject;
}

/** An agent that starts a program for every turn, without a shell: message on stdin, answer on stdout. */
export function exec(command: readonly string[], options: ExecOptions = {}): Agent {
  return declare("exec", execOptions, { ...options, exec: command }, (parsed) => parsed);
}

/**
 * An agent that is served from a remote one: a URL of it or of its card, in any dialect, `skill:<id>` or a name to look
 * up in the registry, or `a2a-lite:<network>/<room>#<peer>`.
 */
export function remote(url: string, options: RemoteOptions = {}): Agent {
  return declare("remote", remoteOptions, { ...options, remote: url }, (parsed) => parsed);
}

/** An agent that answers with a language model, behind any API that is compatible with OpenAI's chat completions. */
export function llm(options: LlmAgentOptions): Agent {
  return declare("llm", llmOptions, options, ({ name, description, skills, inputModes, ...parsed }) => {
    const { concurrency, onCrash, repeatTextInStatus, timeout, ...model } = parsed;
    return { name, description, skills, inputModes, concurrency, onCrash, repeatTextInStatus, timeout, llm: model };
  });
}

/** Builds a workflow in code, with the keys and templates of a workflow file. Each call returns a new builder. */
export function workflow(name: string, options?: { readonly description?: string }): WorkflowBuilder<never>;
/**
 * A workflow as an agent: its definition as in a workflow file, or one that was built or loaded. Its steps call agents of
 * the same server by name. Throws an error that names all problems.
 */
export function workflow(
  definition: WorkflowDefinition | Workflow | WorkflowBuilder<string>,
  options?: CodeAgentOptions,
): Agent;
export function workflow(
  given: string | WorkflowDefinition | Workflow | WorkflowBuilder<string>,
  options: CodeAgentOptions & { readonly description?: string } = {},
): WorkflowBuilder<never> | Agent {
  if (typeof given === "string") return buildWorkflow(given, options);
  const built = compileDefinition(given);
  return declare("workflow", agentOptions, options, (parsed) => ({ ...parsed, workflow: {} }), built);
}

const GENERAL = {
  name: true,
  description: true,
  skills: true,
  inputModes: true,
  concurrency: true,
  onCrash: true,
  repeatTextInStatus: true,
  timeout: true,
} as const satisfies Record<keyof CodeAgentOptions, true>;
const agentOptions = agentSchema.pick(GENERAL);
const execOptions = agentSchema.pick({ ...GENERAL, exec: true, format: true, cwd: true, env: true, stderr: true });
const remoteOptions = agentSchema.pick({
  ...GENERAL,
  remote: true,
  dialect: true,
  binding: true,
  credentials: true,
  origins: true,
  streaming: true,
});
const llmOptions = llmSchema.extend(agentOptions.shape);

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
  readonly kind: string;
  toConfig(folder: string): AgentConfig;
  readonly workflow?: Workflow | undefined;
}

type DeclaredAgent = Agent & { readonly [DECLARED]: Declaration };

export const isDeclared = (agent: Agent): agent is DeclaredAgent => DECLARED in agent;

/** Checked at once, where the mistake is made; built when the server starts, which has its name, its log and its limits. */
function declare<S extends z.ZodType>(
  kind: string,
  schema: S,
  options: object,
  toParsed: (parsed: z.output<S>) => object,
  workflow?: Workflow,
): Agent {
  const values = withDuration(options);
  const { data, error } = schema.safeParse(values, { jitless: true });
  const findings = (error?.issues ?? []).flatMap((issue) => toFindings(issue, schema, values));
  const problems = findings.length > 0 ? findings : checkAgentRules("", values).filter(({ path }) => path.length > 2);
  if (problems.length > 0 || data === undefined) {
    const shown = problems.map(({ message, path }) => {
      const at = formatPath(path.filter((step, index) => !(index === 0 && step === "agents") && step !== ""));
      return at === "" ? message : `${at}: ${message}`;
    });
    throw new TypeError(`${kind}: ${shown.join("\n")}`);
  }
  const parsed = toParsed(data) as ParsedAgent;
  const { name = kind, description = `An agent made by ${kind}(…).` } = parsed;
  const unbuilt = () => {
    throw new TypeError(`What ${kind}(…) returns runs as an agent of serve({ agents }) only.`);
  };
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
    [DECLARED]: { kind, toConfig: (folder) => toAgentConfig(parsed, folder), workflow },
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

async function build(name: string, { toConfig, workflow }: Declaration, around: Surroundings): Promise<Agent> {
  const { folder, log, strict } = around;
  const { overrides, source } = toConfig(folder);
  const config = {
    agents: new Map(around.agents.map((agent) => [agent, undefined])),
    folder,
    strict,
    limits: { ...DEFAULT_LIMITS, ...around.limits },
    times: { ...DEFAULT_TIMES, ...around.times },
    server: { watchdogMs: false as const },
  };
  const called = checkCalledAgents(name, source, Object.fromEntries(config.agents));
  if (called.length > 0) {
    throw new TypeError(called.map(({ message, path }) => `${formatPath(path)}: ${message}`).join("\n"));
  }
  const own = workflow === undefined ? source : { kind: "workflow" as const, built: workflow };
  return buildAgent(name, { overrides, source: own }, config, { log });
}

/** Secrets in the options of declared agents. */
export function secretsOfDeclared(agents: Readonly<Record<string, Agent>>): readonly string[] {
  return Object.values(agents).flatMap((agent) =>
    isDeclared(agent) ? secretsOfSource(agent[DECLARED].toConfig("").source) : [],
  );
}
