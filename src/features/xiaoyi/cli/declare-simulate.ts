import { type Command, Option } from "commander";
import {
  addExamples,
  COMMAND_GROUPS,
  collect,
  outputOption,
  type RunCommand,
} from "../../../core/cli/declare-options.ts";
import { TRAIT_LIST } from "./platform-traits.ts";

export function declareSimulate(program: Command, run: RunCommand): void {
  const simulate = program
    .command("simulate")
    .description("simulate a platform to test agents with")
    .helpCommand(false)
    .helpGroup(COMMAND_GROUPS.serving);
  const xiaoyi = simulate
    .command("xiaoyi")
    .description(
      "simulate Huawei's Xiaoyi platform, with a phone at this terminal: every line is a message, /help lists what else it can do",
    )
    .option("-p, --port <port>", "port that agents dial, 0 for a free one", "4200")
    .option("--http <url>", "call the agent at this address instead of waiting for it to dial")
    .option("--stateless", "with --http: send credentials with every call, without sessions")
    .addOption(
      new Option("--profile <profile>", "how the phone renders answers: as documented, or as devices do")
        .choices(["phone-2026-04", "spec"])
        .default("phone-2026-04"),
    )
    .addOption(new Option("--device <device>", "which app it is").choices(["mobile", "desktop"]).default("mobile"))
    .option("--timeout <duration>", "how long the agent may stay silent or away", "60s")
    .option("--script <file>", "take the lines from a file")
    .option("--scenario <name>", "play a scripted conversation instead, or all; may be repeated", collect)
    .option(
      "--phrase <name=text>",
      "what to say in scenarios: plain, streamed, slow, asking, reply, long, memorable, recalling",
      collect,
    )
    .option(
      "--disconnects <count>",
      "how often the scenario of that name loses the connection, each time after 10 s (default: 5)",
    )
    .option("--trait <name=value>", `behaviour of the platform: ${TRAIT_LIST}; may be repeated`, collect)
    .option("--seed <number>", "seed for ids and randomness, to repeat a run")
    .addOption(outputOption())
    .action(run(async () => (await import("./simulate.ts")).simulateXiaoyi));
  addExamples(xiaoyi, [
    ["dragoman simulate xiaoyi", "a phone for agents that dial; prints what to put into their dragoman.yaml"],
    ["dragoman simulate xiaoyi --http http://127.0.0.1:4000/agent/message", "one for agents that are called"],
    ["printf 'hello\\n/kick\\nstill there?\\n' | dragoman simulate xiaoyi -o json", "the lines from a pipe"],
    ["dragoman simulate xiaoyi --scenario all", "every scripted conversation; exit 1 if one fails"],
  ]);
}
