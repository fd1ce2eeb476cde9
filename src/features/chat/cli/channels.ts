import { existsSync } from "node:fs";
import { findConfig } from "../../../core/cli/commands/serve.ts";
import { usageError } from "../../../core/cli/errors.ts";
import { type Output, printResult } from "../../../core/cli/output.ts";
import { field, table } from "../../../core/cli/render/text.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import { closestMatch } from "../../../core/model/suggestions.ts";
import { missingPackages } from "../networks/load-package.ts";
import type { Network } from "../networks/network.ts";
import { NETWORKS } from "../networks/networks.ts";
import { type ConfiguredChannel, configuredChannels } from "./configured.ts";
import { describeAbilities } from "./describe.ts";
import { exampleConfig } from "./example-config.ts";

export interface ChannelsFlags {
  readonly config?: string;
  readonly output?: "text" | "json";
}

export async function channelsList(output: Output, flags: ChannelsFlags): Promise<void> {
  const file = flags.config ?? findConfig();
  const configured = flags.config === undefined && !existsSync(file) ? [] : await configuredChannels(file, output);
  const value = {
    networks: NETWORKS.map((network) => describeNetwork(network)),
    configured: configured.map(({ agent, network, path, rooms }) => ({
      entry: path,
      network: network.name,
      agent,
      rooms: rooms ?? null,
    })),
  };
  printResult(output, flags.output, value, () => renderList(configured, file));
}

export function channelsShow(output: Output, name: string, flags: Pick<ChannelsFlags, "output">): void {
  const network = findNetwork(name);
  const config = exampleConfig(network);
  printResult(output, flags.output, { ...describeNetwork(network), setup: network.setup, config }, () =>
    [
      field("Network", network.title),
      field("Package", packageOf(network)),
      field("Can", describeAbilities(network.abilities)),
      `\nSet-up:\n${network.setup.map((step, index) => `${String(index + 1).padStart(3)}. ${step}\n`).join("")}`,
      `\nIn dragoman.yaml:\n${config.replace(/^/gm, "  ").trimEnd()}\n`,
      `\nThen: dragoman channels test ${network.name}\n`,
    ].join(""),
  );
}

export function findNetwork(name: string): Network {
  const found = NETWORKS.find((network) => network.name === name);
  if (found !== undefined) return found;
  const names = NETWORKS.map((network) => network.name);
  const meant = closestMatch(name, names);
  const hint = meant === undefined ? `The networks are ${names.join(", ")}.` : `Did you mean ${meant}?`;
  throw usageError(`There is no network "${name}".`, hint);
}

function describeNetwork(network: Network) {
  const { abilities, name, packages, title } = network;
  const missing = missingPackages(network);
  return {
    name,
    title,
    packages,
    installed: missing.length === 0,
    install: missing.length === 0 ? null : installCommand(missing),
    abilities,
  };
}

const installCommand = (packages: readonly string[]) => `npm install ${packages.join(" ")}`;

function packageOf(network: Network): string {
  const missing = missingPackages(network);
  if (network.packages.length === 0) return "none needed";
  return missing.length === 0
    ? `${network.packages.join(", ")} (installed)`
    : `not installed: ${installCommand(missing)}`;
}

function renderList(configured: readonly ConfiguredChannel[], file: string): string {
  const rows = NETWORKS.map((network) => [
    network.name,
    network.title,
    packageOf(network),
    describeAbilities(network.abilities),
  ]);
  const entries = configured.map(({ agent, network, path, rooms }) => [
    path,
    network.name,
    agent,
    rooms?.join(", ") ?? "any room",
  ]);
  const own = entries.length === 0 ? "" : `\nConfigured in ${safeLine(file)}:\n${table(entries, "  ")}`;
  return `${table(rows)}${own}\nSet-up of one: dragoman channels show <network>\n`;
}
