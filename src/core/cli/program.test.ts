import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { cliPage } from "../../../scripts/cli-docs.ts";
import { bashCompletion, fishCompletion, zshCompletion } from "./commands/completion.ts";
import { createOutput } from "./output.ts";
import { createProgram } from "./program.ts";
import { formatFromArguments, normalizeArguments } from "./run.ts";

const schema = JSON.parse(readFileSync(new URL("../../../schema/dragoman.schema.json", import.meta.url), "utf8"));
const nowhere = { write: () => true };
const program = createProgram({ output: createOutput(nowhere, nowhere, {}) });

describe("the command line", () => {
  it("takes global options before the command too", () => {
    expect(normalizeArguments(program, ["-o", "json", "--debug", "task", "get", "T", "--wait"])).toEqual([
      "task",
      "get",
      "-o",
      "json",
      "--debug",
      "T",
      "--wait",
    ]);
    expect(normalizeArguments(program, ["--agent-card=x", "send", "--", "-o"])).toEqual([
      "send",
      "--agent-card=x",
      "--",
      "-o",
    ]);
    expect(normalizeArguments(program, ["--version"])).toEqual(["--version"]);
  });

  it("[A2ACLI_CLI_001] gives help on nested commands", () => {
    expect(normalizeArguments(program, ["help", "task", "get"])).toEqual(["task", "get", "--help"]);
    expect(normalizeArguments(program, ["help"])).toEqual(["help"]);
  });

  it("tells the wanted format even of a wrong command line", () => {
    expect(formatFromArguments(["send", "-o", "json"])).toBe("json");
    expect(formatFromArguments(["send", "--output=json"])).toBe("json");
    expect(formatFromArguments(["send", "-ojson", "--bogus"])).toBe("json");
    expect(formatFromArguments(["send", "--", "-o", "json"])).toBeUndefined();
  });

  it("has the commands and flags of the specification", () => {
    const names = program.commands.flatMap((command) =>
      command.commands.length === 0
        ? [command.name()]
        : command.commands.map((child) => `${command.name()} ${child.name()}`),
    );
    expect(names.sort()).toEqual([
      "auth login",
      "auth logout",
      "auth status",
      "card get",
      "card sign",
      "card verify",
      "channels list",
      "channels show",
      "channels test",
      "chat",
      "completion",
      "config show",
      "conformance",
      "demo-server",
      "doctor",
      "init",
      "push deliveries",
      "push inbox",
      "push redeliver",
      "registry add",
      "registry list",
      "registry remove",
      "registry search",
      "registry show",
      "registry watch",
      "run",
      "send",
      "serve",
      "simulate xiaoyi",
      "store copy",
      "store migrate",
      "store prune",
      "store stats",
      "store vacuum",
      "task cancel",
      "task download",
      "task get",
      "task list",
      "task push-config",
      "task subscribe",
      "top",
    ]);
    const send = program.commands.find((command) => command.name() === "send");
    const flags = send?.options.map((option) => option.long) ?? [];
    expect(flags).toEqual(
      expect.arrayContaining(
        `--a2a-version --agent-card --api-key --async --bearer --ca-cert --client-cert --client-key --config --context-id --data --debug --dialect --file --insecure
        --media-type --metadata --no-wait --output --poll-interval --return-immediately --stream --svc-param --task-id
        --text --timeout --transport --verbose --wait`.split(/\s+/),
      ),
    );
  });

  it("[A2ACLI_AUTH_001] does not call --svc-param a way to authenticate", () => {
    const send = program.commands.find((command) => command.name() === "send");
    const option = send?.options.find(({ long }) => long === "--svc-param");
    expect(option?.description).not.toMatch(/auth|credential|token/i);
  });

  it("explains every command with an example", () => {
    const page = cliPage();
    for (const heading of page.matchAll(/^## (card get|task \w+|send|chat|serve|init|doctor)$/gm)) {
      const section = page.slice(heading.index).split("\n## ", 2)[0];
      expect(section, heading[0]).toContain("```sh\n# ");
    }
    expect(page).toContain("| `--bearer` | `A2ACLI_BEARER` |");
  });

  it("[A2ACLI_CLI_002] completes in three shells", () => {
    const bash = bashCompletion(program);
    execFileSync("bash", ["-n"], { input: bash });
    const reply = (words: string): string[] =>
      execFileSync("bash", [
        "-c",
        `${bash}\nCOMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _dragoman; echo "\${COMPREPLY[*]}"`,
      ])
        .toString()
        .trim()
        .split(" ");
    expect(reply("dragoman ca")).toEqual(["card"]);
    expect(reply("dragoman task ''")).toEqual(
      expect.arrayContaining(["get", "list", "cancel", "subscribe", "download"]),
    );
    expect(reply("dragoman send --ag")).toEqual(["--agent-card"]);
    expect(reply("dragoman send -o ''")).toEqual(["text", "json"]);
    expect(reply("dragoman send --transport ''")).toEqual(["JSONRPC", "HTTP+JSON", "GRPC"]);
    expect(reply("dragoman serve --log-level ''")).toEqual(schema.properties.log.properties.level.anyOf[0].enum);
    expect(reply("dragoman completion ''")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
    expect(zshCompletion(program)).toMatch(/^#compdef dragoman\n/);
    expect(fishCompletion(program)).toContain("__fish_seen_subcommand_from task; and __fish_seen_subcommand_from get");
  });
});
