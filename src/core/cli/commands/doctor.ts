import { existsSync } from "node:fs";
import { safeLine } from "../../model/safe-text.ts";
import type { DragomanConfig } from "../../server/config/index.ts";
import {
  type Check,
  checkAgents,
  checkConfig,
  checkDriver,
  checkFiles,
  checkNode,
  checkPorts,
  skipped,
} from "../doctor/checks.ts";
import { doctorParts } from "../doctor/parts.ts";
import type { AgentReport } from "../doctor/probe/claims.ts";
import { checkSecurity } from "../doctor/security.ts";
import { checkSections, checkStore } from "../doctor/store.ts";
import { CommandExit, EXIT } from "../errors.ts";
import { ifGiven, readDuration, readHttpUrl } from "../flag-values.ts";
import { type Output, printResult } from "../output.ts";
import { table } from "../render/text.ts";
import { StopSignal } from "../session/stop-signal.ts";
import { findConfig } from "./serve.ts";

export interface DoctorFlags {
  readonly output?: "text" | "json";
  readonly strict?: boolean;
  readonly deep?: boolean;
  readonly online?: boolean;
  /** False with `--no-probe`. */
  readonly probe?: boolean;
  readonly registry?: string;
  readonly agent?: readonly string[];
  readonly send?: boolean;
  readonly allowPrivateTargets?: boolean;
  readonly probeTimeout?: string;
}

const PROBE_TIMEOUT_MS = 15_000;
/** An agent may think about a message for longer than it takes to answer a question about a task. */
const SEND_TIMEOUT_MS = 120_000;

export async function doctor(output: Output, config: string | undefined, flags: DoctorFlags): Promise<void> {
  const registry = ifGiven(flags.registry, (text) => readHttpUrl("--registry", text).href);
  const timeoutMs =
    ifGiven(flags.probeTimeout, (text) => readDuration("--probe-timeout", text)) ??
    (flags.send === true ? SEND_TIMEOUT_MS : PROBE_TIMEOUT_MS);
  const stop = new StopSignal();
  stop.listenForInterrupt();
  try {
    const { checks, loaded } = await checkSetup(output, config, flags);
    const agents: AgentReport[] = [];
    if (flags.probe !== false) {
      const { probeAll } = await import("../doctor/probe/index.ts");
      const { send = false, allowPrivateTargets = false, agent: only } = flags;
      const found = await probeAll(loaded, {
        ...{ output, registry, only, send, allowPrivateTargets, timeoutMs },
        signal: stop.signal,
      });
      checks.push(...found.checks);
      agents.push(...found.agents);
    }
    const counts = (status: Check["status"]) => status === "failed" || (flags.strict === true && status === "warning");
    const healthy = !checks.some(({ status }) => counts(status)) && !agents.some(({ status }) => status === "wrong");
    printResult(output, flags.output, { healthy, checks, agents }, () => renderChecks(checks) + renderAgents(agents));
    if (stop.reason !== undefined) throw new CommandExit(EXIT.interrupted);
    if (!healthy) throw new CommandExit(EXIT.failure);
  } finally {
    stop.dispose();
  }
}

async function checkSetup(
  output: Output,
  config: string | undefined,
  flags: DoctorFlags,
): Promise<{ readonly checks: Check[]; readonly loaded: DragomanConfig | undefined }> {
  const checks: Check[] = [checkNode(process.versions.node), await checkDriver()];
  const file = config ?? findConfig();
  if (config === undefined && !existsSync(file)) {
    checks.push(skipped("configuration", `${file} not found`));
    return { checks, loaded: undefined };
  }
  const { check, config: loaded } = await checkConfig(file);
  checks.push(check);
  if (loaded !== undefined) {
    checks.push(
      ...(await checkPorts(loaded.server)),
      ...(await checkStore(loaded.store, { deep: flags.deep === true, onProgress: output.info })),
      ...checkSections(loaded),
      ...(await checkAgents(loaded)),
      ...(await checkFiles(loaded, Date.now())),
      ...(await checkSecurity(loaded, file)),
    );
    for (const { checks: check } of await doctorParts()) checks.push(...((await check?.(loaded, flags)) ?? []));
  }
  return { checks, loaded };
}

function renderChecks(checks: readonly Check[]): string {
  return table(checks.map(({ detail, name, status }) => [status, name, detail]));
}

function renderAgents(agents: readonly AgentReport[]): string {
  return agents
    .map(({ agent, claims, part, source, url }) => {
      const what = part === undefined ? agent : `${part} of ${agent}`;
      const from = source === "configuration" ? "" : `, from ${source}`;
      const place = url === undefined ? "" : ` at ${url}`;
      const rows = claims.map(({ claim, detail, status }) => [
        status === "not-checked" ? "not checked" : status,
        claim,
        detail,
      ]);
      return `\n${safeLine(`${what}${place}${from}`)}\n${table(rows, "  ")}`;
    })
    .join("");
}
