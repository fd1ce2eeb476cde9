/** `npm run article-chain`: four real processes and what its README shows. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cleanEnvironment, ROOT, requireBuild, runProgram } from "../built/cli.ts";
import { blocksOf, commandsOf } from "../readme/blocks.ts";
import { closeLater, createFolder, freePort } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";

const NAMES = ["outline", "document", "summary", "orchestrator"];
const FOLDER = join(ROOT, "examples/article-chain");

interface Running {
  readonly exited: Promise<number | null>;
  readonly output: () => string;
  /** Resolves with the match once the output has it, and rejects if the script exits before. */
  shows(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
}

function run(environment: Readonly<Record<string, string>>): Running {
  requireBuild();
  const child = spawn(process.execPath, [join(FOLDER, "main.mjs")], {
    env: cleanEnvironment({ CHAIN_DATA: createFolder(), ...environment }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    output += chunk;
  });
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  closeLater(() => {
    child.kill("SIGTERM");
    return exited;
  });
  return {
    exited,
    output: () => output,
    kill: (signal) => child.kill(signal),
    shows: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(output);
          if (found !== null) resolve(found);
        };
        child.stdout.on("data", look);
        void exited.then((code) => reject(new Error(`It exited with ${code}: ${output}`)));
        look();
      }),
  };
}

const PORTS = [8001, 8002, 8003, 8010];

function withPorts(command: string, urls: readonly string[]): string {
  return PORTS.reduce((text, port, at) => text.replaceAll(`http://127.0.0.1:${port}`, urls[at] ?? ""), command);
}

/** `…` stands for anything, and other lines may come between those that are shown. */
function toPattern(shown: string): RegExp {
  const lines = shown.trimEnd().split("\n");
  const escaped = lines.map((line) => line.split("…").map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")));
  return new RegExp(`^${escaped.map((pieces) => pieces.join(".*")).join("[\\s\\S]*\\n")}`);
}

const FREE_PORTS = { OUTLINE_PORT: "0", DOCUMENT_PORT: "0", SUMMARY_PORT: "0" };
const READY = /^The article chain is ready: (\S+)$/m;

describe("the start script of the article chain", () => {
  it("starts four servers, says where to call, and stops all of them on Ctrl-C", async () => {
    const script = run({ ...FREE_PORTS, ORCHESTRATOR_PORT: "0" });
    const [, url = ""] = await script.shows(READY);
    const urls = NAMES.map((name) => {
      const found = new RegExp(`^${name} *\\| dragoman \\S+ listens on (\\S+)$`, "m").exec(script.output());
      return found?.[1] ?? "";
    });
    expect(url).toBe(`${urls.at(-1)}/agents/article`);
    const blocks = blocksOf("examples/article-chain/README.md");
    const commands = blocks.filter(({ kind }) => kind === "run").flatMap(({ text }) => commandsOf(text));
    const outputs = blocks.filter(({ kind }) => kind === "output");
    expect(commands).toHaveLength(outputs.length);
    for (const [at, command] of commands.entries()) {
      const { stdout } = await runProgram("sh", ["-c", withPorts(command, urls)]);
      expect(stdout).toMatch(toPattern(outputs[at]?.text ?? ""));
    }
    script.kill("SIGINT");
    expect(await script.exited).toBe(0);
    for (const one of urls) await expect(sendRaw(one, { path: "/healthz" })).rejects.toThrow("ECONNREFUSED");
  });

  it("stops the others when one ends, with its exit code", async () => {
    const port = await freePort();
    const taken = run({
      ...FREE_PORTS,
      ORCHESTRATOR_PORT: "0",
      SUMMARY_PORT: String(port),
      DOCUMENT_PORT: String(port),
    });
    expect(await taken.exited).toBe(1);
    expect(taken.output()).toMatch(/^(document|summary) +\| .*in use/m);
  });
});
