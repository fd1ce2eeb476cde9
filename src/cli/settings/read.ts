import { DIALECT_NAMES } from "../../client/dialect-names.ts";
import { SIGNATURE_POLICIES, type SignaturePolicy } from "../../client/options.ts";
import type { SigningKeys } from "../../dialects/contract.ts";
import { parseDuration } from "../../model/duration.ts";
import type { JsonObject } from "../../model/json.ts";
import { usageError } from "../errors.ts";
import {
  DEFAULT_POLL_INTERVAL_MS,
  type FlagValues,
  longFlag,
  type ResolvedSetting,
  resolveSetting,
  SETTINGS,
  type SettingName,
  variableName,
} from "./definitions.ts";
import type { SettingFile } from "./files.ts";

export interface Settings {
  readonly agentCard: string | undefined;
  /** The agent as given in a flag, to be repeated in commands to paste; undefined if it comes from elsewhere. */
  readonly agentCardFlag: string | undefined;
  readonly output: "text" | "json";
  /** The format was set explicitly. */
  readonly outputIsGiven: boolean;
  readonly transport: readonly string[];
  readonly a2aVersion: string | undefined;
  readonly dialect: string | undefined;
  readonly bearer: string | undefined;
  readonly apiKey: string | undefined;
  readonly keys: SigningKeys | undefined;
  readonly authCode: string | undefined;
  readonly svcParam: readonly (readonly [name: string, value: string])[];
  readonly credentialOrigin: readonly string[];
  readonly signatures: SignaturePolicy | undefined;
  readonly cardKey: readonly string[];
  readonly jkuOrigin: readonly string[];
  readonly insecure: boolean;
  readonly timeoutMs: number | undefined;
  readonly pollIntervalMs: number;
  readonly verbose: boolean;
  readonly debug: boolean;
  readonly async: boolean;
  readonly wait: boolean;
  readonly contextId: string | undefined;
  readonly taskId: string | undefined;
  readonly metadata: JsonObject | undefined;
  readonly stream: boolean;
}

export function readSettings(
  flags: FlagValues & { readonly stream?: boolean },
  environment: Readonly<Record<string, string | undefined>>,
  files: readonly SettingFile[],
): Settings {
  const get = (name: SettingName): ResolvedSetting | undefined => resolveSetting(name, flags, environment, files);
  const text = (name: SettingName): string | undefined => asText(get(name)?.value);
  const on = (name: SettingName): boolean => get(name)?.value === true;
  const card = get("agentCard");
  return {
    agentCard: asText(card?.value),
    agentCardFlag: card?.source.kind === "flag" ? asText(card.value) : undefined,
    output: readFormat(text("output")),
    outputIsGiven: text("output") !== undefined,
    transport: asList(get("transport")?.value),
    a2aVersion: readVersion(text("a2aVersion")),
    dialect: readDialect(text("dialect")),
    bearer: text("bearer"),
    apiKey: text("apiKey"),
    keys: readSigningKeys(text("accessKey"), text("secretKey")),
    authCode: text("authCode"),
    svcParam: asList(get("svcParam")?.value).map(readServiceParameter),
    credentialOrigin: asList(get("credentialOrigin")?.value).map((text) => readOrigin("credentialOrigin", text)),
    signatures: readPolicy(text("signatures")),
    cardKey: asList(get("cardKey")?.value),
    jkuOrigin: asList(get("jkuOrigin")?.value).map((text) => readOrigin("jkuOrigin", text)),
    insecure: on("insecure"),
    timeoutMs: readDuration("timeout", text("timeout")),
    pollIntervalMs: readDuration("pollInterval", text("pollInterval")) ?? DEFAULT_POLL_INTERVAL_MS,
    verbose: on("verbose"),
    debug: on("debug"),
    async: readAsync(flags, on),
    wait: on("wait"),
    contextId: text("contextId"),
    taskId: text("taskId"),
    metadata: readMetadata(text("metadata")),
    stream: flags.stream === true,
  };
}

function readDialect(text: string | undefined): string | undefined {
  if (text === undefined || DIALECT_NAMES.some((name) => name === text)) return text;
  throw usageError(`--dialect must be one of ${DIALECT_NAMES.join(", ")}, not "${text}".`);
}

function readSigningKeys(ak: string | undefined, sk: string | undefined): SigningKeys | undefined {
  if (ak !== undefined && sk !== undefined) return { ak, sk };
  if (ak === undefined && sk === undefined) return undefined;
  const [given, missing] =
    ak === undefined ? (["secretKey", "accessKey"] as const) : (["accessKey", "secretKey"] as const);
  throw usageError(`--${longFlag(SETTINGS[given].flags)} is nothing without ${variableName(missing)}.`);
}

function asText(value: ResolvedSetting["value"] | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function asList(value: ResolvedSetting["value"] | undefined): readonly string[] {
  return typeof value === "object" ? value : [];
}

function readAsync(flags: FlagValues, on: (name: SettingName) => boolean): boolean {
  if (flags.async === true && flags.wait === true) throw usageError("--async and --wait exclude each other.");
  if (flags.wait !== undefined) return flags.wait === false;
  return on("async") && !(flags.async === undefined && on("wait"));
}

function readFormat(text: string | undefined): "text" | "json" {
  if (text === undefined || text === "text" || text === "json") return text ?? "text";
  throw usageError(`--output must be text or json, not "${text}".`);
}

function readVersion(text: string | undefined): string | undefined {
  if (text === undefined || /^\d+\.\d+$/.test(text)) return text;
  throw usageError(`--a2a-version must look like 1.0, not "${text}".`);
}

function readPolicy(text: string | undefined): SignaturePolicy | undefined {
  const policy = SIGNATURE_POLICIES.find((known) => known === text);
  if (text === undefined || policy !== undefined) return policy;
  throw usageError(`--signatures must be ${SIGNATURE_POLICIES.join(", ")}, not "${text}".`);
}

function readOrigin(name: SettingName, text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text) && new URL(text).pathname === "/") return new URL(text).origin;
  throw usageError(
    `--${longFlag(SETTINGS[name].flags)} must look like https://host or https://host:port, not "${text}".`,
  );
}

function readDuration(name: SettingName, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const milliseconds = parseDuration(text, { typed: true });
  if (milliseconds !== undefined && milliseconds > 0) return milliseconds;
  throw usageError(`--${longFlag(SETTINGS[name].flags)} must be a duration such as 500ms, 30s or 5m, not "${text}".`);
}

function readServiceParameter(text: string): readonly [string, string] {
  const colon = text.indexOf(":");
  const name = text.slice(0, colon).trim();
  const value = text.slice(colon + 1).trim();
  if (colon < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw usageError("--svc-param must look like name:value.");
  // The value may be a credential: it must not appear in the message.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: header values must not contain them
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value))
    throw usageError(`The value of --svc-param ${name} is not one line.`);
  return [name, value];
}

function readMetadata(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Reported below, like a value of the wrong type.
  }
  throw usageError(`--metadata must be a JSON object such as '{"key":"value"}'.`);
}
