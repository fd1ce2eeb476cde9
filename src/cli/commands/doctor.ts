import { existsSync } from "node:fs";
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
import { checkSecurity } from "../doctor/security.ts";
import { checkStore } from "../doctor/store.ts";
import { checkLinks, checkXiaoyi } from "../doctor/xiaoyi.ts";
import { CommandExit, EXIT } from "../errors.ts";
import { type Output, printResult } from "../output.ts";
import { safeLine, table } from "../render/text.ts";
import { findConfig } from "./serve.ts";

export interface DoctorFlags {
  readonly output?: "text" | "json";
  readonly strict?: boolean;
  readonly deep?: boolean;
  readonly online?: boolean;
}

export async function doctor(output: Output, config: string | undefined, flags: DoctorFlags): Promise<void> {
  const checks: Check[] = [checkNode(process.versions.node), await checkDriver()];
  const file = config ?? findConfig();
  if (config === undefined && !existsSync(file)) {
    checks.push(skipped("configuration", `${file} not found`));
  } else {
    const { check, config: loaded } = await checkConfig(file);
    checks.push(check);
    if (loaded !== undefined) {
      checks.push(
        ...(await checkPorts(loaded.server)),
        ...(await checkStore(loaded.store, { deep: flags.deep === true, onProgress: output.info })),
        ...(await checkAgents(loaded)),
        ...(await checkFiles(loaded, Date.now())),
        ...(await checkSecurity(loaded, file)),
        ...checkXiaoyi(loaded, Date.now()),
        ...(await checkLinks(loaded.xiaoyi.links, flags.online === true)),
      );
    }
  }
  const counts = (status: Check["status"]) => status === "failed" || (flags.strict === true && status === "warning");
  const failed = checks.filter(({ status }) => counts(status)).length;
  const text = () => table(checks.map(({ detail, name, status }) => [status, name, safeLine(detail)]));
  printResult(output, flags.output, { healthy: failed === 0, checks }, text);
  if (failed > 0) throw new CommandExit(EXIT.failure);
}
