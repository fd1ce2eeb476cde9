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
  /** Flags that decide which agent is called and how, to be repeated in commands to paste; never a secret. */
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

const REPEATED = ["agentCard", "a2aVersion", "dialect", "clientCert", "clientKey", "caCert"] as const;
const SHORT_FLAGS: Partial<Record<SettingName, string>> = { agentCard: "-a" };

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
    repeatedFlags: REPEATED.flatMap((name) => {
      const given = flags[name];
      return typeof given === "string" ? [SHORT_FLAGS[name] ?? flagName(name), given] : [];
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
export function commandLine({ repeatedFlags }: Settings, command: string, ...rest: readonly string[]): string {
  return ["dragoman", command, ...repeatedFlags.map(quoteForShell), ...rest].join(" ");
}
