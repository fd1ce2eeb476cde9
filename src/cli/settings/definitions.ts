import { DIALECT_NAMES } from "../../client/dialect-names.ts";
import { formatDuration } from "../../model/duration.ts";
import { usageError } from "../errors.ts";
import type { SettingFile } from "./files.ts";

/** How a setting's value is parsed. A list is given as repeated flags, or in one variable with its separator. */
type SettingKind = "text" | "json" | "switch" | "duration" | "format" | { readonly list: string };

export interface SettingDefinition {
  readonly flags: string;
  readonly kind: SettingKind;
  readonly description: string;
  /** A description of the default. */
  readonly fallback?: string;
  readonly secret?: true;
}

/** Options that can also be set in the environment or a file, keyed by the name of their long flag. */
export const SETTINGS = {
  agentCard: {
    flags: "-a, --agent-card <ref>",
    kind: "text",
    description: "the agent: a host, a base URL, the URL of its card, or a file with the card",
  },
  output: {
    flags: "-o, --output <format>",
    kind: "format",
    description: "text for people, json for the protocol's own types",
    fallback: "text",
  },
  transport: {
    flags: "--transport <binding>",
    kind: { list: "," },
    description: "binding to prefer (JSONRPC, HTTP+JSON, GRPC); repeat it, best first",
    fallback: "the agent's own order",
  },
  a2aVersion: {
    flags: "--a2a-version <version>",
    kind: "text",
    description: "protocol version to speak and no other, e.g. 1.0, 0.3 or 0.1",
    fallback: "1.0 or later; an older one if the agent offers nothing newer",
  },
  dialect: {
    flags: "--dialect <name>",
    kind: "text",
    description: `dialect to speak and no other: ${DIALECT_NAMES.join(", ")}`,
    fallback: "from the agent's card",
  },
  bearer: {
    flags: "--bearer <token>",
    kind: "text",
    secret: true,
    description:
      "bearer token; other users can see it in the process list and it stays in the shell's history, the variable avoids both",
  },
  apiKey: {
    flags: "--api-key <key>",
    kind: "text",
    secret: true,
    description: "API key, sent where the card says; visible like --bearer, prefer the variable",
  },
  accessKey: {
    flags: "--access-key <key>",
    kind: "text",
    description: "names the secret key that requests are signed with, for dialects that sign (xiaoyi-http)",
  },
  secretKey: {
    flags: "--secret-key <key>",
    kind: "text",
    secret: true,
    description: "signs requests and is never sent; with --access-key, visible like --bearer, prefer the variable",
  },
  authCode: {
    flags: "--auth-code <code>",
    kind: "text",
    secret: true,
    description: "code of a user's login, exchanged with the agent before the first message (xiaoyi-http)",
  },
  svcParam: {
    flags: "--svc-param <name:value>",
    kind: { list: "\n" },
    secret: true,
    description: "service parameter sent with every request (an HTTP header); may be repeated",
  },
  credentialOrigin: {
    flags: "--credential-origin <origin>",
    kind: { list: "," },
    description:
      "origin besides the card's own that credentials may go to, e.g. https://api.example.com; may be repeated",
    fallback: "only where the card is",
  },
  signatures: {
    flags: "--signatures <policy>",
    kind: "text",
    description: "what becomes of a card that no trusted key has signed: require refuses it, prefer and ignore use it",
    fallback: "ignore; prefer with --card-key or --jku-origin",
  },
  cardKey: {
    flags: "--card-key <file>",
    kind: { list: "," },
    description: "public key that signs the agent's card (PEM, JWK or JWK set); may be repeated",
  },
  jkuOrigin: {
    flags: "--jku-origin <origin>",
    kind: { list: "," },
    description: "https origin from which keys that a card's signature names may be fetched; may be repeated",
    fallback: "none",
  },
  insecure: {
    flags: "--insecure",
    kind: "switch",
    description: "accept any TLS certificate; for development only",
    fallback: "certificates are verified",
  },
  timeout: {
    flags: "--timeout <duration>",
    kind: "duration",
    description: "give up after this long (500ms, 30s, 5m)",
    fallback: "as long as the task takes",
  },
  pollInterval: {
    flags: "--poll-interval <duration>",
    kind: "duration",
    description: "how often to ask for the task's state where it has to be asked for",
    fallback: "2s",
  },
  verbose: {
    flags: "--verbose",
    kind: "switch",
    description: "show every part with its media type, name and metadata, also of what is sent",
    fallback: "concise",
  },
  debug: {
    flags: "--debug",
    kind: "switch",
    description: "show the exchange with the agent on stderr; credentials are left out",
    fallback: "off",
  },
  async: {
    flags: "--async",
    kind: "switch",
    description: "do not wait: print the identifiers and leave",
    fallback: "wait until the task ends or needs the caller",
  },
  wait: {
    flags: "--wait",
    kind: "switch",
    description: "wait until the task ends or needs the caller",
  },
  contextId: {
    flags: "--context-id <id>",
    kind: "text",
    description: "context the message or the tasks belong to",
  },
  taskId: {
    flags: "--task-id <id>",
    kind: "text",
    description: "existing task to address",
  },
  metadata: {
    flags: "--metadata <json>",
    kind: "json",
    description: "JSON object sent as the request's metadata",
  },
} as const satisfies Record<string, SettingDefinition>;

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function longFlag(flags: string): string {
  return /--([a-z0-9-]+)/.exec(flags)?.[1] ?? flags;
}

export function variableName(name: SettingName): string {
  return `A2ACLI_${longFlag(SETTINGS[name].flags).replaceAll("-", "_").toUpperCase()}`;
}

/** Flags as parsed by commander: a string, a boolean or a list. */
export type FlagValues = Readonly<Partial<Record<SettingName, string | boolean | readonly string[]>>>;

type SettingSource =
  | { readonly kind: "flag" }
  | { readonly kind: "environment"; readonly variable: string }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "default" };

export interface ResolvedSetting {
  readonly value: string | boolean | readonly string[];
  readonly source: SettingSource;
}

/** Precedence: flag, environment, then the files in the given order, nearest first. */
export function resolveSetting(
  name: SettingName,
  flags: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
  files: readonly SettingFile[],
): ResolvedSetting | undefined {
  const given = flags[name];
  if (given !== undefined) return { value: given, source: { kind: "flag" } };
  const variable = variableName(name);
  const fromEnvironment = environment[variable];
  if (fromEnvironment !== undefined && fromEnvironment !== "") {
    return { value: parseSetting(name, fromEnvironment), source: { kind: "environment", variable } };
  }
  for (const file of files) {
    const value = file.values[variable];
    if (value !== undefined && value !== "") {
      return { value: parseSetting(name, value), source: { kind: "file", path: file.path } };
    }
  }
  return undefined;
}

function parseSetting(name: SettingName, text: string): string | boolean | readonly string[] {
  const kind: SettingKind = SETTINGS[name].kind;
  if (kind === "switch") return parseBoolean(name, text);
  if (typeof kind === "object") {
    return text
      .split(kind.list)
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }
  return text;
}

function parseBoolean(name: SettingName, text: string): boolean {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  if (/^(0|false|no|off)$/i.test(text)) return false;
  throw usageError(`${variableName(name)} must be true or false, not "${text}".`);
}

export function describeSource(source: SettingSource): string {
  switch (source.kind) {
    case "flag":
      return "flag";
    case "environment":
      return `environment ${source.variable}`;
    case "file":
      return `file ${source.path}`;
    case "default":
      return "default";
  }
}

/** A setting's value for display; of secrets, only that they are set. */
export function formatValue(name: SettingName, value: ResolvedSetting["value"]): string {
  const definition: SettingDefinition = SETTINGS[name];
  if (definition.secret) return typeof value === "object" && value.length > 1 ? `(${value.length} set)` : "(set)";
  return typeof value === "object" ? value.join(", ") : String(value);
}

export const DEFAULT_POLL_INTERVAL_MS = 2000;

export function describeDefault(name: SettingName): string | undefined {
  const definition: SettingDefinition = SETTINGS[name];
  return name === "pollInterval" ? formatDuration(DEFAULT_POLL_INTERVAL_MS) : definition.fallback;
}
