import type { Command } from "commander";
import {
  EXAMPLE_AGENT as AGENT,
  addAgentOptions,
  addExamples,
  COMMAND_GROUPS,
  collect,
  type RunCommand,
} from "../../../core/cli/declare-options.ts";

export function declareConformance(program: Command, run: RunCommand): void {
  const conformance = program.command("conformance").helpGroup(COMMAND_GROUPS.calling);
  conformance
    .description(
      "test an agent against what A2A requires, over every interface of its card or those that --transport and --a2a-version name, for 10m or --timeout at most; exit 1 if a MUST fails",
    )
    .option("--level <level>", "lowest level to test: must, should or may (default: may)")
    .option("--only <id>", "only this requirement or check; may be repeated", collect)
    .option("--fail-fast", "end with the first MUST that fails")
    .option("--report <format=file>", "also write the report there: junit, json or markdown; may be repeated", collect)
    .option("--junit <file>", "same as --report junit=FILE")
    .option("--request-timeout <duration>", "how long one answer may take (default: 10s)")
    .option("--webhook-host <host>", "how the agent reaches this machine with push notifications (default: loopback)")
    .option("--other-caller <name:value>", "header of a second caller, who must not see the first one's tasks", collect)
    .option("--list", "list what is tested, without an agent");
  addAgentOptions(conformance);
  conformance.action(run(async () => (await import("./conformance.ts")).conformance));
  addExamples(conformance, [
    [`dragoman conformance -a ${AGENT}`, "everything, over every interface"],
    [`dragoman conformance -a ${AGENT} --transport JSONRPC --level must`, "what JSON-RPC must do"],
    [`dragoman conformance -a ${AGENT} --report junit=report.xml --report markdown=report.md`, "for a build server"],
    ["dragoman conformance --list", "the requirements with their sections"],
  ]);
}
