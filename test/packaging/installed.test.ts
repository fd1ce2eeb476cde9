/** The way of a newcomer, as the README has it: pack, install the tarball elsewhere, make a project and start it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { cleanEnvironment, type Finished, ROOT, runProgram } from "../built/cli.ts";
import { blocksOf, commandsOf } from "../readme/blocks.ts";
import { type Registry, startRegistry } from "./registry.ts";

/** Installing seventy packages and building the whole of this one are slow on a machine that is busy. */
const SLOW_MS = 600_000;

let folder: string;
let tarball: string;
let registry: Registry;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-installed-"));
  const packed = await runProgram("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]);
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  tarball = join(folder, filename);
  registry = await startRegistry(tarball);
}, SLOW_MS);
afterAll(async () => {
  await registry?.close();
  rmSync(folder, { recursive: true, force: true });
});

const environment = (): Record<string, string> => ({
  npm_config_audit: "false",
  npm_config_cache: join(folder, "cache"),
  npm_config_fund: "false",
  npm_config_registry: registry.url,
  npm_config_update_notifier: "false",
});

function inProject(name: string): { run(program: string, ...values: string[]): Promise<Finished>; path: string } {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return {
    path,
    run: (program, ...values) => runProgram(program, values, { folder: path, environment: environment() }),
  };
}

async function installInto(name: string, what: string) {
  const project = inProject(name);
  writeFileSync(join(project.path, "package.json"), '{ "private": true }');
  const installed = await project.run("npm", "install", what);
  expect({ code: installed.code, stderr: installed.code === 0 ? "" : installed.stderr }).toEqual({
    code: 0,
    stderr: "",
  });
  const made = await project.run("npx", "--offline", "dragoman", "init", "my-agent");
  expect(made.code).toBe(0);
  const manifest = JSON.parse(readFileSync(join(project.path, "my-agent", "package.json"), "utf8"));
  return { made, dependency: manifest.dependencies.dragoman, agent: inProject(join(name, "my-agent")) };
}

describe("a package that was packed", () => {
  it(
    "is installed, makes a project, and the project starts",
    async () => {
      const { agent, dependency, made } = await installInto("from-tarball", tarball);
      expect(dependency).toBe(`file:../../${tarball.slice(folder.length + 1)}`);
      expect(made.stderr).toContain("package.json takes dragoman from this machine");
      const installed = await agent.run("npm", "install");
      expect({ code: installed.code, stderr: installed.code === 0 ? "" : installed.stderr }).toEqual({
        code: 0,
        stderr: "",
      });

      const ports = ["--port", "0", "--grpc-port", "off"];
      // A group of its own: npm and the shell below it do not pass a signal on to what they run.
      const child = spawn("npm", ["start", "--", ...ports], {
        cwd: agent.path,
        detached: true,
        env: cleanEnvironment(environment()),
      });
      const closed = once(child, "close");
      try {
        const url = await new Promise<string>((resolve, reject) => {
          let written = "";
          const look = (chunk: Buffer): void => {
            written += chunk.toString("utf8");
            const found = /listens on (http:\S+)/.exec(written)?.[1];
            if (found !== undefined) resolve(found);
          };
          child.stdout.on("data", look);
          child.stderr.on("data", look);
          void closed.then(() => reject(new Error(`It ended: ${written}`)));
        });
        expect(await (await connect(url)).send("Ada")).toMatchObject({
          task: { artifacts: [{ parts: [{ text: "Hello, Ada! Good to see you." }] }] },
        });
      } finally {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
        await closed;
      }
    },
    SLOW_MS,
  );

  it(
    "is named by its version where it came from a registry",
    async () => {
      const { dependency, made } = await installInto("from-registry", "dragoman");
      expect(dependency).toBe(`^${JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version}`);
      expect(made.stderr).not.toContain("this machine");
    },
    SLOW_MS,
  );
});

describe("the README", () => {
  it("says how to install", () => {
    const [install] = blocksOf("README.md").filter(({ kind }) => kind === "install");
    expect(commandsOf(install?.text ?? "").map((line) => line.replace(/ +#.*$/, ""))).toEqual([
      "npm ci && npm pack",
      "npm install ../dragoman/dragoman-0.1.0.tgz",
      "npx dragoman init my-agent",
      "cd my-agent && npm install && npm start",
    ]);
  });
});

describe("npm start in a clone", () => {
  it(
    "builds without a word",
    async () => {
      const built = await runProgram("npm", ["run", "--silent", "prestart", "--", "--out-dir", join(folder, "dist")]);
      expect(built.code).toBe(0);
      const lines = `${built.stdout}${built.stderr}`.split("\n").filter((line) => line !== "");
      expect(lines.filter((line) => !line.startsWith("npm warn"))).toEqual([]);
      expect(readFileSync(join(folder, "dist", "cli", "main.js"), "utf8")).not.toBe("");
    },
    SLOW_MS,
  );
});
