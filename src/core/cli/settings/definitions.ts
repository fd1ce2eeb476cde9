import { dialectNames } from "../../client/dialect-names.ts";
import { SIGNATURE_POLICIES } from "../../client/options.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import { isLoopback } from "../../wire/loopback.ts";
import { usageError } from "../errors.ts";
import { readChoice, readDuration, readHttpUrl } from "../flag-values.ts";
import type { SettingFile } from "./files.ts";

export interface SettingDefinition {
  readonly flags: string;
  readonly description: string;
  /** A description of the default. */
  readonly fallback?: string;
  readonly secret?: true;
  /** Separator of the values in a variable; on the command line, the flag is repeated. */
  readonly list?: string;
  /** Parses the value; `flag` is for the error message. */
  readonly read?: (flag: string, text: string) => unknown;
}

const FORMATS = ["text", "json"] as const;

/** Options that can also be set in the environment or a file, keyed by the name of their long flag. */
export const SETTINGS = {
  agentCard: {
    flags: "-a, --agent-card <ref>",
    description:
      "the agent: a host, a base URL, the URL of its card, a file with the card, its name, its id or skill:<id> in a registry, or a2a-lite:<network>/<room>#<participant>",
  },
  registry: {
    flags: "--registry <url>",
    description: "registry in which names, ids and skills are looked up",
    fallback: "that of the server in ./dragoman.yaml, else http://127.0.0.1:4000",
    read: readRegistry,
  },
  output: {
    flags: "-o, --output <format>",
    description: "text for people, json for the protocol's own types",
    fallback: "text",
    read: (flag, text) => readChoice(flag, text, FORMATS),
  },
  transport: {
    flags: "--transport <binding>",
    list: ",",
    description: "binding to prefer (JSONRPC, HTTP+JSON, GRPC); repeat it, best first",
    fallback: "the agent's own order",
  },
  a2aVersion: {
    flags: "--a2a-version <version>",
    description: "use this protocol version only, e.g. 1.0; required for older agents, e.g. 0.3 or 0.1",
    fallback: "the newest of both sides from 1.0 on, never an older one",
    read: readVersion,
  },
  dialect: {
    flags: "--dialect <name>",
    get description() {
      return `use this dialect only: ${dialectNames().join(", ")}`;
    },
    fallback: "from the agent's card",
    read: (flag, text) => readChoice(flag, text, dialectNames()),
  },
  bearer: {
    flags: "--bearer <token>",
    secret: true,
    description:
      "bearer token; other users can see it in the process list and it stays in the shell's history, the variable avoids both",
  },
  apiKey: {
    flags: "--api-key <key>",
    secret: true,
    description: "API key, sent where the card says; visible like --bearer, prefer the variable",
  },
  accessKey: {
    flags: "--access-key <key>",
    description: "names the secret key that requests are signed with, for dialects that sign (xiaoyi-http)",
  },
  secretKey: {
    flags: "--secret-key <key>",
    secret: true,
    description: "signs requests and is never sent; with --access-key, visible like --bearer, prefer the variable",
  },
  authCode: {
    flags: "--auth-code <code>",
    secret: true,
    description: "code of a user's login, exchanged with the agent before the first message (xiaoyi-http)",
  },
  svcParam: {
    flags: "--svc-param <name:value>",
    list: "\n",
    secret: true,
    description: "service parameter sent with every request (an HTTP header); may be repeated",
    read: readServiceParameter,
  },
  credentialOrigin: {
    flags: "--credential-origin <origin>",
    list: ",",
    description:
      "origin besides the card's own that credentials may go to, e.g. https://api.example.com; may be repeated",
    fallback: "only where the card is",
    read: readOrigin,
  },
  clientCert: {
    flags: "--client-cert <file>",
    description: "client certificate for agents that require mutual TLS (PEM)",
  },
  clientKey: {
    flags: "--client-key <file>",
    description: "private key of the client certificate (PEM, unencrypted)",
    fallback: "in the file of --client-cert",
  },
  caCert: {
    flags: "--ca-cert <file>",
    description: "certificate of an authority to trust besides the usual ones (PEM)",
  },
  signatures: {
    flags: "--signatures <policy>",
    description: "how to treat a card that no trusted key has signed: require rejects it, prefer and ignore use it",
    fallback: "ignore; prefer with --card-key or --jku-origin",
    read: (flag, text) => readChoice(flag, text, SIGNATURE_POLICIES),
  },
  cardKey: {
    flags: "--card-key <file>",
    list: ",",
    description: "public key that signs the agent's card (PEM, JWK or JWK set); may be repeated",
  },
  jkuOrigin: {
    flags: "--jku-origin <origin>",
    list: ",",
    description: "https origin from which keys that a card's signature names may be fetched; may be repeated",
    fallback: "none",
    read: readOrigin,
  },
  insecure: {
    flags: "--insecure",
    description: "accept any TLS certificate; for development only",
    fallback: "certificates are verified",
  },
  timeout: {
    flags: "--timeout <duration>",
    description: "give up after this long (500ms, 30s, 5m)",
    fallback: "as long as the task takes",
    read: readDuration,
  },
  pollInterval: {
    flags: "--poll-interval <duration>",
    description: "interval at which to poll the task's state if the agent cannot stream it",
    fallback: "2s",
    read: readDuration,
  },
  verbose: {
    flags: "--verbose",
    description: "show every part with its media type, name and metadata, also of what is sent",
    fallback: "concise",
  },
  debug: {
    flags: "--debug",
    description: "show the exchange with the agent on stderr; credentials are left out",
    fallback: "off",
  },
  async: {
    flags: "--async",
    description: "do not wait: print the identifiers and leave",
    fallback: "wait until the task ends or needs the caller",
  },
  wait: {
    flags: "--wait",
    description: "wait until the task ends or needs the caller",
  },
  contextId: {
    flags: "--context-id <id>",
    description: "context the message or the tasks belong to",
  },
  taskId: {
    flags: "--task-id <id>",
    description: "id of an existing task",
  },
  metadata: {
    flags: "--metadata <json>",
    description: "JSON object sent as the request's metadata",
    read: readMetadata,
  },
} as const satisfies Record<string, SettingDefinition>;

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function longFlag(flags: string): string {
  return /--([a-z0-9-]+)/.exec(flags)?.[1] ?? flags;
}

export function flagName(name: SettingName): string {
  return `--${longFlag(SETTINGS[name].flags)}`;
}

export function variableName(name: SettingName): string {
  return `A2ACLI_${longFlag(SETTINGS[name].flags).replaceAll("-", "_").toUpperCase()}`;
}

/** Flags as parsed by commander: a string, a boolean or a list. */
export type FlagValues = Readonly<Partial<Record<SettingName, string | boolean | readonly string[]>>>;

export interface ResolvedSetting {
  readonly value: string | boolean | readonly string[];
  /** `flag`, or the variable or file with its name. */
  readonly source: string;
}

/** Precedence: flag, environment, then the files in the given order, nearest first. */
export function resolveSetting(
  name: SettingName,
  flags: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
  files: readonly SettingFile[],
): ResolvedSetting | undefined {
  const given = flags[name];
  if (given !== undefined) return { value: given, source: "flag" };
  const variable = variableName(name);
  const fromEnvironment = environment[variable];
  if (fromEnvironment !== undefined && fromEnvironment !== "") {
    return { value: parseSetting(name, fromEnvironment), source: `environment ${variable}` };
  }
  for (const file of files) {
    const value = file.values[variable];
    if (value !== undefined && value !== "") {
      return { value: parseSetting(name, value), source: `file ${file.path}` };
    }
  }
  return undefined;
}

function parseSetting(name: SettingName, text: string): string | boolean | readonly string[] {
  const { flags, list }: SettingDefinition = SETTINGS[name];
  if (isSwitch(flags)) return parseBoolean(name, text);
  if (list === undefined) return text;
  const items = text.split(list).map((item) => item.trim());
  return items.filter((item) => item !== "");
}

/** Flags that take no value. */
export function isSwitch(flags: string): boolean {
  return !flags.includes("<");
}

function parseBoolean(name: SettingName, text: string): boolean {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  if (/^(0|false|no|off)$/i.test(text)) return false;
  throw usageError(`${variableName(name)} must be true or false, not "${text}".`);
}

/** A setting's value for display; of secrets, only that they are set. */
export function formatValue(name: SettingName, value: ResolvedSetting["value"]): string {
  const definition: SettingDefinition = SETTINGS[name];
  if (definition.secret) return typeof value === "object" && value.length > 1 ? `(${value.length} set)` : "(set)";
  return typeof value === "object" ? value.join(", ") : String(value);
}

function readVersion(flag: string, text: string): string {
  if (/^\d+\.\d+$/.test(text)) return text;
  throw usageError(`${flag} must look like 1.0, not "${text}".`);
}

function readOrigin(flag: string, text: string): string {
  if (/^https?:\/\//i.test(text) && canParseUrl(text) && new URL(text).pathname === "/") return new URL(text).origin;
  throw usageError(`${flag} must look like https://host or https://host:port, not "${text}".`);
}

/** As with `-a`, other hosts than this machine without TLS require an explicit http://. */
function readRegistry(flag: string, text: string): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return readHttpUrl(flag, text).href;
  const plain = readHttpUrl(flag, `http://${text}`);
  return isLoopback(plain.hostname) ? plain.href : readHttpUrl(flag, `https://${text}`).href;
}

function readServiceParameter(flag: string, text: string): readonly [name: string, value: string] {
  const colon = text.indexOf(":");
  const name = text.slice(0, colon).trim();
  const value = text.slice(colon + 1).trim();
  if (colon < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw usageError(`${flag} must look like name:value.`);
  // The value may be a credential: it must not appear in the message.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: header values must not contain them
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value))
    throw usageError(`The value of ${flag} ${name} is not one line.`);
  return [name, value];
}

function readMetadata(flag: string, text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Reported below, like a value of the wrong type.
  }
  throw usageError(`${flag} must be a JSON object such as '{"key":"value"}'.`);
}
