import type { SigningKeys } from "../../dialects/contract.ts";
import { usageError } from "../errors.ts";
import { quoteForShell } from "../render/text.ts";
import {
  type FlagValues,
  flagName,
  isSwitch,
  type ResolvedSetting,
  resolveSetting,
  SETTING_NAMES,
  SETTINGS,
  type SettingDefinition,
  type SettingName,
  variableName,
} from "./definitions.ts";
import type { SettingFile } from "./files.ts";

type Parsed<D> = D extends { read: (flag: string, text: string) => infer T } ? T : string;
type SettingValue<D> = D extends { flags: `${string}<${string}` }
  ? D extends { list: string }
    ? readonly Parsed<D>[]
    : Parsed<D> | undefined
  : boolean;
type SettingValues = { readonly [N in SettingName]: SettingValue<(typeof SETTINGS)[N]> };

export interface Settings extends Omit<SettingValues, "accessKey" | "secretKey" | "timeout" | "pollInterval"> {
  /** The agent as given in a flag, to be repeated in commands to paste; undefined if it comes from elsewhere. */
  readonly agentCardFlag: string | undefined;
  /** Other flags that decide how it is called, to be repeated too; never a secret. */
  readonly repeatedFlags: readonly string[];
  readonly output: "text" | "json";
  /** The format was set explicitly. */
  readonly outputIsGiven: boolean;
  readonly keys: SigningKeys | undefined;
  readonly timeoutMs: number | undefined;
  readonly pollIntervalMs: number;
  readonly stream: boolean;
}

const DEFAULT_POLL_INTERVAL_MS = 2000;

const REPEATED = ["a2aVersion", "dialect", "clientCert", "clientKey", "caCert"] as const;

export function readSettings(
  flags: FlagValues & { readonly stream?: boolean },
  environment: Readonly<Record<string, string | undefined>>,
  files: readonly SettingFile[],
): Settings {
  const values = Object.fromEntries(
    SETTING_NAMES.map((name) => [name, parse(name, resolveSetting(name, flags, environment, files)?.value)]),
  ) as SettingValues;
  const { accessKey, secretKey, timeout, pollInterval, ...others } = values;
  return {
    ...others,
    agentCardFlag: flags.agentCard === undefined ? undefined : values.agentCard,
    repeatedFlags: REPEATED.flatMap((name) => {
      const given = flags[name];
      return typeof given === "string" ? [flagName(name), given] : [];
    }),
    output: values.output ?? "text",
    outputIsGiven: values.output !== undefined,
    keys: pairSigningKeys(accessKey, secretKey),
    timeoutMs: timeout,
    pollIntervalMs: pollInterval ?? DEFAULT_POLL_INTERVAL_MS,
    async: readAsync(flags, values),
    stream: flags.stream === true,
  };
}

function parse(name: SettingName, value: ResolvedSetting["value"] | undefined): unknown {
  const { flags, list, read = (_flag, text) => text }: SettingDefinition = SETTINGS[name];
  if (isSwitch(flags)) return value === true;
  const parseOne = (text: string) => read(flagName(name), text);
  if (list !== undefined) return typeof value === "object" ? value.map(parseOne) : [];
  return typeof value === "string" && value !== "" ? parseOne(value) : undefined;
}

function pairSigningKeys(ak: string | undefined, sk: string | undefined): SigningKeys | undefined {
  if (ak !== undefined && sk !== undefined) return { ak, sk };
  if (ak === undefined && sk === undefined) return undefined;
  const [given, missing] =
    ak === undefined ? (["secretKey", "accessKey"] as const) : (["accessKey", "secretKey"] as const);
  throw usageError(`${flagName(given)} requires ${variableName(missing)}.`);
}

function readAsync(flags: FlagValues, { async, wait }: SettingValues): boolean {
  if (flags.async === true && flags.wait === true) throw usageError("--async and --wait are mutually exclusive.");
  if (flags.wait !== undefined) return flags.wait === false;
  return async && !(flags.async === undefined && wait);
}

/** A command line for the same agent, ready to paste. */
export function commandLine(settings: Settings, command: string, ...rest: readonly string[]): string {
  const agent = settings.agentCardFlag === undefined ? [] : ["-a", settings.agentCardFlag];
  return ["dragoman", command, ...[...agent, ...settings.repeatedFlags].map(quoteForShell), ...rest].join(" ");
}
