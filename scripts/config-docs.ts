import { z } from "zod";
import { parseConfig } from "../src/server/config/load.ts";
import { UNAVAILABLE_KEYS } from "../src/server/config/problems.ts";
import { AGENT_KINDS, configSchema } from "../src/server/config/schema.ts";

/** The part of JSON Schema that the configuration needs. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly [key: string]: unknown;
}

/** The schema as the validator has it: what may be written, before variables are put in. */
export function plainSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: "input", target: "draft-7" }) as JsonSchema;
}

/** The schema for editors: wherever a form is asked for, a text with a variable in it will do too. */
export function editorSchema(): JsonSchema {
  const { $schema, ...schema } = plainSchema();
  const properties = { ...schema.properties };
  const agents = properties.agents;
  if (agents === undefined || typeof agents.additionalProperties !== "object") throw new Error("no schema of agents");
  const kinds = AGENT_KINDS.map((kind) => ({ required: [kind] }));
  properties.agents = { ...agents, additionalProperties: { ...agents.additionalProperties, oneOf: kinds } };
  return { $schema, title: "dragoman.yaml", ...allowVariables({ ...schema, properties }) };
}

function allowVariables(schema: JsonSchema): JsonSchema {
  const { properties, additionalProperties, items } = schema;
  if (properties !== undefined || typeof additionalProperties === "object" || items !== undefined) {
    return {
      ...schema,
      ...(properties && {
        properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, allowVariables(value)])),
      }),
      ...(typeof additionalProperties === "object" && { additionalProperties: allowVariables(additionalProperties) }),
      ...(items && { items: allowVariables(items) }),
    };
  }
  const isFree = schema.type === "string" && !schema.enum && !schema.pattern && !schema.format;
  if (isFree || schema.type === "object") return schema;
  const { description, default: standard, ...form } = schema;
  return {
    ...(description !== undefined && { description }),
    ...(standard !== undefined && { default: standard }),
    anyOf: [form, { type: "string", pattern: "\\$\\{.+\\}" }],
  };
}

const EXAMPLE = `# yaml-language-server: $schema=./node_modules/dragoman/schema/dragoman.schema.json
server:
  host: 127.0.0.1
  port: \${PORT:-4000}
store: sqlite:.dragoman/data.db
default: weather
agents:
  echo: { use: echo }
  weather: { module: ./agents/weather.ts, timeout: 60s }
  script: { exec: [python3, agent.py], env: { MODE: fast }, concurrency: 4 }
limits: { body: 4MiB }
`;

const INTRODUCTION = `# Configuration

<!-- Made by scripts/generate-docs.ts from the schema. Change that, then run npm run docs. -->

\`dragoman serve [file]\` reads \`dragoman.yaml\`:

\`\`\`yaml
${EXAMPLE}\`\`\`

- \`\${NAME}\` in a value is replaced by the environment variable NAME, \`\${NAME:-default}\` by the default when NAME is unset
  or empty. A variable that is not set and has no default is an error. \`$\${\` stands for a plain \`\${\`.
- A \`.env\` file beside the configuration (\`NAME=value\`, one per line) adds variables that the environment does not have; what is
  set in the environment wins. Agents see them, too: modules in \`process.env\`, programs in their environment. \`doctor\`, \`store\`
  and \`config show\` read the same file.
- Durations are \`500ms\`, \`60s\`, \`5m\`, \`1h\`, \`7d\`; sizes are \`512KiB\`, \`16MiB\`, \`1GiB\` (or \`KB\`, \`MB\`, \`GB\` in thousands).
- Relative paths are meant from the folder of the file.
- Unknown keys and bad values are refused, all at once, with line, column and the nearest valid key.
- \`dragoman config show <file>\` prints every value in force and where it comes from, without secrets.
`;

const PROCESSES = `## Agents that are processes

An \`exec\` agent is started once per turn, without a shell. It gets the environment of the server, \`env\`, and
\`DRAGOMAN_TASK_ID\`, \`DRAGOMAN_CONTEXT_ID\` and \`DRAGOMAN_HOPS\`, which \`dragoman send\` and \`connect\` pass on. The message comes in on stdin, which then ends.

Each line of stdout is sent as it comes, as a chunk of the text artifact \`output\`. The newline is part of the chunk, so the
chunks joined are the output; a last line without one is sent as it is. Lines longer than 1 MiB are sent in
pieces, and of more than 64 lines that arrive at once those of text are joined.

A line that is a JSON object with exactly one of these keys is an event instead of text; JSON that only resembles one is text:

| line | event |
|---|---|
| \`{"status": "Reading files"}\` | still working, with that message |
| \`{"status": "working"}\` | a state: \`working\`, \`input-required\`, \`auth-required\`, \`completed\`, \`failed\`, \`rejected\` |
| \`{"status": {"state": "failed", "message": "No such city"}}\` | a state with a message |
| \`{"inputRequired": "Which city?"}\` | a question; the answer starts a new turn of the same task |
| \`{"artifact": {"name": "report", "text": "…"}}\` | an artifact of \`text\`, \`data\` or \`parts\`; also \`artifactId\`, \`description\`, \`metadata\`, \`append\`, \`lastChunk\` |
| \`{"message": "Hello"}\` | the answer: alone it needs no task, after other output it ends the task with that message |

Where a message stands, \`{"text": …}\`, \`{"parts": [...]}\` or a list of parts may stand too.

Exit code 0 completes the task. Any other code, or a signal, fails it; the caller reads which. What a program writes to stderr
goes to the log, at the end of the run, the last 4 KB of it and without known secrets; with \`stderr: caller\` the caller of a run
that fails gets it, too. When the task is cancelled or times out, the process and its group get SIGTERM, and SIGKILL after
\`cancelGrace\`.

While the store is behind, stdout is not read and the program waits. A run may write as much text as \`limits.part\` allows, and
artifacts as \`limits.task\` does; a program that writes more is ended and its task fails. A program that is not found is reported
when the server starts, by \`serve\` and by \`dragoman doctor\`.
`;

/** The page about the configuration. */
export function configurationPage(schema: JsonSchema): string {
  // What is documented must work.
  parseConfig(EXAMPLE, { source: "the example", folder: "/", environment: {} });
  const all = Object.entries(schema.properties ?? {});
  const single = all.filter(([, value]) => !isSection(value)).map(([key, value]) => rowOf(key, value, false));
  const blocks = [
    INTRODUCTION,
    `## At the top\n\n${tableOf(single)}`,
    ...all.filter(([, value]) => isSection(value)).map(([key, value]) => sectionOf(key, value)),
    PROCESSES,
    unavailableSection(),
  ];
  return blocks.join("\n");
}

function sectionOf(name: string, schema: JsonSchema): string {
  const entries = schema.additionalProperties;
  const [lead, rows] =
    typeof entries === "object"
      ? [`\n\nEach \`${name}.NAME\` has:`, rowsOf(entries, "")]
      : ["", rowsOf(schema, `${name}.`)];
  return `## ${name}\n\n${schema.description ?? ""}${lead}\n\n${tableOf(rows)}`;
}

interface Row {
  readonly path: string;
  readonly schema: JsonSchema;
  readonly needed: boolean;
}

/** Nested maps and the members of lists are rows of the same table. */
function rowsOf(schema: JsonSchema, prefix: string): readonly Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, value]): readonly Row[] => {
    const path = `${prefix}${key}`;
    if (value.properties !== undefined) return rowsOf(value, `${path}.`);
    const row = rowOf(path, value, requiredOf(schema).includes(key));
    return value.items?.properties === undefined ? [row] : [row, ...rowsOf(value.items, `${path}[].`)];
  });
}

function rowOf(path: string, schema: JsonSchema, needed: boolean): Row {
  return { path, schema, needed };
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ path, schema, needed }) => {
    const standard = schema.default === undefined ? (needed ? "needed" : "") : code(schema.default);
    return `| \`${path}\` | ${typeOf(schema)} | ${standard} | ${inCell(schema.description ?? "")} |`;
  });
  return `| key | value | default | meaning |\n|---|---|---|---|\n${lines.join("\n")}\n`;
}

function typeOf(schema: JsonSchema): string {
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as JsonSchema[]).map(typeOf).reverse().join(" or ");
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(code).join(", ");
  if (schema.type === "integer") return rangeOf(schema);
  if (schema.type === "boolean") return "`true` or `false`";
  if (schema.type === "array") return schema.items?.properties === undefined ? "list of texts" : "list of maps";
  if (schema.type === "object") return "map of texts";
  if (schema.pattern?.includes("|ms|") || schema.pattern?.includes("(ms|")) return "duration";
  if (schema.pattern?.includes("MiB")) return "size";
  return schema.format === "uri" ? "URL" : "text";
}

function rangeOf({ minimum, maximum }: JsonSchema): string {
  const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (minimum === undefined) return "whole number";
  return most === undefined ? `whole number from ${minimum}` : `whole number, ${minimum} to ${most}`;
}

function unavailableSection(): string {
  const lines = Object.entries(UNAVAILABLE_KEYS).map(
    ([key, feature]) => `| \`${key.replace("*", "NAME")}\` | ${feature} |`,
  );
  return `## Not available in this version\n\nThese keys are known and refused with a message that says so:\n\n| key | for |\n|---|---|\n${lines.join("\n")}\n`;
}

function isSection(schema: JsonSchema): boolean {
  return schema.properties !== undefined || typeof schema.additionalProperties === "object";
}

function requiredOf(schema: JsonSchema): readonly string[] {
  return Array.isArray(schema.required) ? schema.required.map(String) : [];
}

function code(value: unknown): string {
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

function inCell(text: string): string {
  return text.replaceAll("|", "\\|");
}
