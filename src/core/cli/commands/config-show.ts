import { type Output, printJson } from "../output.ts";
import { field } from "../render/text.ts";
import { credentialFolder, openVault } from "../session/credentials.ts";
import {
  type FlagValues,
  formatValue,
  longFlag,
  resolveSetting,
  SETTING_NAMES,
  SETTINGS,
  type SettingDefinition,
  variableName,
} from "../settings/definitions.ts";
import { findSettingFiles } from "../settings/files.ts";
import { readSettings } from "../settings/read.ts";

export type ConfigShowFlags = FlagValues & { readonly config?: string };

/** Shows the effective settings and where each comes from; with a file, the resolved server configuration. */
export async function configShow(output: Output, file: string | undefined, flags: ConfigShowFlags): Promise<void> {
  if (file !== undefined) return showServerConfig(output, file, flags);
  const files = findSettingFiles(flags.config);
  const { output: format } = readSettings(flags, process.env, files);
  const shown = SETTING_NAMES.map((name) => {
    const found = resolveSetting(name, flags, process.env, files);
    const { fallback }: SettingDefinition = SETTINGS[name];
    return {
      name: longFlag(SETTINGS[name].flags),
      variable: variableName(name),
      value: found === undefined ? (fallback ?? null) : formatValue(name, found.value),
      source: found?.source ?? "default",
    };
  });
  const logins = await listLogins(output);
  if (format === "json") {
    printJson(output, { settings: shown, files: files.map(({ path }) => path), logins }, "document");
    return;
  }
  for (const { name, source, value } of shown) output.write(field(name, `${value ?? "(not set)"} (${source})`));
  for (const { agent, folder, scheme } of logins) output.write(field("login", `${agent} ${scheme} (folder ${folder})`));
}

/** Logins are kept between runs, so they are shown too; auth status has the details. */
async function listLogins(output: Output) {
  const folder = credentialFolder();
  const stored = await openVault(output).list();
  return stored.flatMap(({ agent, schemes }) => Object.keys(schemes).map((scheme) => ({ agent, scheme, folder })));
}

async function showServerConfig(output: Output, file: string, flags: ConfigShowFlags): Promise<void> {
  const { effectiveConfig, loadConfig } = await import("../../server/config/index.ts");
  const effective = effectiveConfig(await loadConfig(file));
  if (flags.output === "json") printJson(output, effective, "document");
  else {
    for (const [path, { origin, value }] of Object.entries(effective)) {
      output.write(field(path, `${JSON.stringify(value)} (${origin})`));
    }
  }
}
