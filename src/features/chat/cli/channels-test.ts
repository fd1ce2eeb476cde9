import { existsSync } from "node:fs";
import { findConfig, missingConfigError } from "../../../core/cli/commands/serve.ts";
import { type Check, failed, messageOf, ok, skipped } from "../../../core/cli/doctor/checks.ts";
import { CommandExit, EXIT, type ExitCode, usageError } from "../../../core/cli/errors.ts";
import { ifGiven, readDuration } from "../../../core/cli/flag-values.ts";
import { type Output, printJson } from "../../../core/cli/output.ts";
import { StopSignal } from "../../../core/cli/session/stop-signal.ts";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { safeLine, safeText } from "../../../core/model/safe-text.ts";
import { systemTools, uuidV7 } from "../../../core/server/clock-and-ids.ts";
import type { Channel } from "../../../core/wire/channel.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { MissingPackageError, missingPackages } from "../networks/load-package.ts";
import { askForCard } from "./ask-for-card.ts";
import { type ChannelsFlags, findNetwork } from "./channels.ts";
import { type ConfiguredChannel, configuredChannels } from "./configured.ts";
import { describeAbilities } from "./describe.ts";
import { listen } from "./listen.ts";
import { PostReader } from "./post-reader.ts";
import { checkRoom, within } from "./round-trip.ts";

interface ChannelsTestFlags extends ChannelsFlags {
  readonly room?: readonly string[];
  readonly peer?: string;
  readonly listen?: string;
  readonly timeout?: string;
}

interface TestOptions {
  readonly rooms: readonly string[] | undefined;
  readonly peer: string | undefined;
  readonly listenMs: number | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called with each step as it ends. */
  readonly report: (check: Check) => void;
  readonly output: Output;
}

interface TestResult {
  readonly exit: ExitCode;
  readonly card?: string;
}

export async function channelsTest(output: Output, name: string, flags: ChannelsTestFlags): Promise<void> {
  const file = flags.config ?? findConfig();
  if (!existsSync(file)) throw missingConfigError(file);
  const entries = selectEntries(await configuredChannels(file, output), name, file);
  const timeoutMs = readDuration("--timeout", flags.timeout ?? "30s");
  const listenMs = ifGiven(flags.listen, (text) => readDuration("--listen", text));
  const stop = new StopSignal();
  stop.listenForInterrupt();
  try {
    let exit: ExitCode = EXIT.done;
    for (const entry of entries) {
      const steps: Check[] = [];
      const report = (check: Check): void => {
        steps.push({ ...check, detail: output.redact(check.detail) });
        if (flags.output !== "json") output.write(output.redact(renderStep(check)));
      };
      if (flags.output !== "json") output.write(`${entry.path}: ${entry.agent} on ${entry.network.title}\n`);
      const result = await testChannel(entry, {
        ...{ rooms: flags.room, peer: flags.peer, listenMs, timeoutMs, signal: stop.signal, report, output },
      });
      exit = exit === EXIT.done ? result.exit : exit;
      if (flags.output === "json") {
        const { agent, network, path } = entry;
        const healthy = result.exit === EXIT.done;
        const card = result.card === undefined ? {} : { card: result.card };
        printJson(output, { entry: path, network: network.name, agent, healthy, steps, ...card }, "document");
      } else if (result.card !== undefined) output.write(`\n${safeText(result.card)}\n`);
    }
    if (stop.reason !== undefined) throw new CommandExit(EXIT.interrupted);
    if (exit !== EXIT.done) throw new CommandExit(exit);
  } finally {
    stop.dispose();
  }
}

/** By its position in the list, as `channels[1]` or `1`, or all of a network. */
function selectEntries(
  entries: readonly ConfiguredChannel[],
  name: string,
  file: string,
): readonly ConfiguredChannel[] {
  const index = /^(?:channels\[(\d+)\]|(\d+))$/.exec(name);
  if (index !== null) {
    const entry = entries[Number(index[1] ?? index[2])];
    if (entry !== undefined) return [entry];
    throw usageError(`${file} has ${entries.length === 1 ? "1 entry" : `${entries.length} entries`} of channels.`);
  }
  const { title } = findNetwork(name);
  const found = entries.filter(({ network }) => network.name === name);
  if (found.length > 0) return found;
  throw usageError(`${file} has no channel on ${title}.`, `dragoman channels show ${name} prints what to write.`);
}

async function testChannel(entry: ConfiguredChannel, options: TestOptions): Promise<TestResult> {
  const { network, settings } = entry;
  const { report, signal, timeoutMs } = options;
  if (missingPackages(network).length > 0) throw new MissingPackageError(network.title, network.packages);
  const tools = { ...systemTools, log: SILENT_LOG, uniqueId: uuidV7 };
  const dialling = new AbortController();
  let channel: Channel;
  try {
    const both = AbortSignal.any([signal, dialling.signal]);
    channel = await within(
      network.open(settings, { cursors: new Map(), signal: both, temporary: true }, tools),
      timeoutMs,
    );
  } catch (error) {
    dialling.abort();
    report(failed("connect", messageOf(error)));
    return { exit: exitOf(error) };
  }
  try {
    report(ok("connect", `as ${channel.self.name} (${channel.self.id})`));
    report(ok("abilities", describeAbilities(channel.abilities)));
    return await testConnection(entry, channel, options);
  } finally {
    channel.close();
    await channel.closed;
  }
}

async function testConnection(entry: ConfiguredChannel, channel: Channel, options: TestOptions): Promise<TestResult> {
  const { agent, rooms: configured } = entry;
  const { listenMs, peer, report, signal, timeoutMs } = options;
  const reader = new PostReader(channel);
  const rooms = options.rooms ?? configured ?? [];
  if (rooms.length === 0) report(skipped("rooms", "none is configured; --room names one to post to"));
  let exit: ExitCode = EXIT.done;
  for (const room of rooms) {
    for await (const check of checkRoom({ channel, reader, room, agent, timeoutMs, signal })) {
      report(check);
      if (check.status === "failed") exit = EXIT.failure;
    }
  }
  let card: string | undefined;
  const [room] = rooms;
  if (peer !== undefined) {
    if (room === undefined) throw usageError("--peer needs a room to ask in; --room names one.");
    card = await askForCard({ channel, reader, room, peer, timeoutMs, signal });
    report(
      card === undefined
        ? failed("card", `${peer} sent none within ${timeoutMs / 1_000} s; is it in ${room}, and does it read bots?`)
        : ok("card", `${peer} answered`),
    );
    if (card === undefined && exit === EXIT.done) exit = EXIT.timeout;
  }
  if (listenMs !== undefined) await listen(entry, channel, reader, { ...options, listenMs });
  return { exit, ...(card !== undefined && { card }) };
}

function exitOf(error: unknown): ExitCode {
  if (!(error instanceof DialError)) return EXIT.failure;
  const { failure, status = 401 } = error;
  const exits = {
    refused: status === 401 || status === 403 ? EXIT.authentication : EXIT.failure,
    certificate: EXIT.unreachable,
    timeout: EXIT.timeout,
    unreachable: EXIT.unreachable,
    stopped: EXIT.interrupted,
  } as const satisfies Record<DialError["failure"], ExitCode>;
  return exits[failure];
}

function renderStep({ detail, name, status }: Check): string {
  return `  ${status.padEnd("skipped".length)}  ${safeLine(name)}: ${safeLine(detail)}\n`;
}
