/** The package as it would be published: packed, unpacked into a project of its own, imported, typed and run. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkPackage, createPackageFromTarballData, type Problem } from "@arethetypeswrong/core";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as client from "../../src/client.ts";
import * as express from "../../src/express.ts";
import * as xiaoyi from "../../src/features/xiaoyi/index.ts";
import * as main from "../../src/index.ts";
import { BUILT_IN } from "../../tsdown.config.ts";
import { ROOT, runProgram, serveConfig } from "../built/cli.ts";
import { createProject, type Project, typeErrors } from "../built/project.ts";

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

let folder: string;
let tarball: string;
let unpacked: string;
let project: Project;
let files: string[];

/** Only what the package declares is there beside it, as after an installation. */
function linkDependencies(into: string): void {
  for (const name of Object.keys(manifest.dependencies)) {
    const target = join(into, "node_modules", name);
    mkdirSync(join(target, ".."), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), target, "dir");
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-pack-"));
  const packed = await runProgram("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]);
  expect(packed.code).toBe(0);
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  tarball = join(folder, filename);
  const extracted = await runProgram("tar", ["-xzf", tarball, "-C", folder]);
  expect(extracted.code).toBe(0);
  unpacked = join(folder, "package");
  files = readdirSync(unpacked, { recursive: true, encoding: "utf8" });
  linkDependencies(unpacked);
  project = createProject(unpacked);
});

afterAll(() => {
  project?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Runs a module in the project and returns what it prints, as JSON. */
async function evaluate(code: string, node: string = process.execPath): Promise<unknown> {
  const {
    code: exit,
    stdout,
    stderr,
  } = await runProgram(node, [project.write("run.mjs", code)], {
    folder: project.folder,
  });
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("the tarball", () => {
  it("has what a user needs and nothing else", () => {
    expect(readdirSync(unpacked).filter((name) => name !== "node_modules")).toEqual(
      expect.arrayContaining([
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "README.zh.md",
        "SECURITY.md",
        "dist",
        "package.json",
        "proto",
        "schema",
      ]),
    );
    const allowed = /^(dist|proto|schema)(\/|$)|^(CHANGELOG\.md|LICENSE|README(\.zh)?\.md|SECURITY\.md|package\.json)$/;
    expect(files.filter((file) => !allowed.test(file))).toEqual([]);
    expect(files.filter((file) => /\.test\.|fixtures|testing|contract-suite/.test(file))).toEqual([]);
  });

  it("tells nothing of the machine it was built on", () => {
    const texts = files.filter((file) => /\.(js|ts|json|md)$/.test(file));
    expect(texts.filter((file) => readFileSync(join(unpacked, file), "utf8").includes(ROOT))).toEqual([]);
  });

  it("carries the licences of the packages that are built in", () => {
    const licences = files.filter((file) => file.startsWith("dist/licenses/"));
    for (const name of [...BUILT_IN, "sonic-boom"]) {
      expect(licences).toContain(`dist/licenses/${name}.txt`);
      expect(manifest.dependencies).not.toHaveProperty([name]);
    }
    expect(licences.filter((file) => !/copyright/i.test(readFileSync(join(unpacked, file), "utf8")))).toEqual([]);
  });

  it("lists the packages that are built in, with the versions that were", () => {
    const sbom = JSON.parse(readFileSync(join(unpacked, "dist/sbom.cdx.json"), "utf8"));
    expect(sbom).toMatchObject({ bomFormat: "CycloneDX", metadata: { component: { name: manifest.name } } });
    const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
    const listed: { name: string; version: string; purl: string }[] = sbom.components;
    for (const { name, version, purl } of listed) {
      expect([name, version]).toEqual([name, packages[`node_modules/${name}`].version]);
      expect(purl).toBe(`pkg:npm/${name.replace("@", "%40")}@${version}`);
    }
    const licences = readdirSync(join(unpacked, "dist/licenses")).map((file) => file.replace(/\.txt$/, ""));
    expect(listed.map(({ name }) => name.replace("/", "-")).sort()).toEqual(licences.sort());
  });

  it("is found in order by publint", async () => {
    const { messages } = await publint({ pkgDir: unpacked, pack: false, strict: true });
    expect(messages).toEqual([]);
  });

  it("has types that resolve wherever an ECMAScript module can be imported", async () => {
    const checked = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball))));
    if (checked.types === false) throw new Error("The package has no types.");
    // There is no CommonJS build: `require` gets the module, and resolution older than `exports` finds nothing.
    const expected = (problem: Problem): boolean =>
      (problem.kind === "NoResolution" && problem.resolutionKind === "node10") || problem.kind === "CJSResolvesToESM";
    expect(checked.problems.filter((problem) => !expected(problem))).toEqual([]);
  });
});

describe("the installed package", () => {
  it("is imported by its names", async () => {
    const found = await evaluate(`
      const doors = ["dragoman", "dragoman/client", "dragoman/express", "dragoman/xiaoyi"];
      const modules = await Promise.all(doors.map((door) => import(door)));
      process.stdout.write(JSON.stringify(modules.map((module) => Object.keys(module).sort())));
    `);
    // Which names these are is pinned for the sources.
    expect(found).toEqual([main, client, express, xiaoyi].map((door) => Object.keys(door).sort()));
  });

  it("keeps its inside to itself", async () => {
    const found = await evaluate(`
      const inside = ["dragoman/dist/index.js", "dragoman/engine/engine.js", "dragoman/server"];
      const results = await Promise.allSettled(inside.map((path) => import(path)));
      process.stdout.write(JSON.stringify(results.map(({ reason }) => reason?.code)));
    `);
    expect(found).toEqual(Array(3).fill("ERR_PACKAGE_PATH_NOT_EXPORTED"));
  });

  it("shares its error class between its doors", async () => {
    const found = await evaluate(`
      import { ProtocolError } from "dragoman";
      import { ProtocolError as Other } from "dragoman/client";
      process.stdout.write(JSON.stringify(ProtocolError === Other && Other.is(new ProtocolError("UNAVAILABLE", "x"))));
    `);
    expect(found).toBe(true);
  });

  it("serves from memory and from disk, and as middleware", async () => {
    const found = await evaluate(`
      import { createServer } from "node:http";
      import { defineAgent, serve } from "dragoman";
      import { connect } from "dragoman/client";
      import { dragoman } from "dragoman/express";
      const hello = defineAgent({ name: "Hello", description: "Says hello.", async *run(turn) {
        yield turn.artifact({ name: "greeting", text: "hello " + turn.text });
      } });
      const answers = [];
      async function ask(url) {
        const outcome = await (await connect(url)).send("world");
        answers.push(outcome.task.artifacts[0].parts[0].text);
      }
      for (const store of ["memory:", "sqlite:data.db"]) {
        const server = await serve({ agents: { hello }, port: 0, store });
        await ask(server.url + "/agents/hello");
        await server.close();
      }
      const http = createServer((request, response) => middleware(request, response));
      await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
      const publicUrl = "http://127.0.0.1:" + http.address().port;
      const middleware = await dragoman({ agents: { hello }, publicUrl });
      await ask(publicUrl);
      await middleware.close();
      http.closeAllConnections();
      http.close();
      process.stdout.write(JSON.stringify(answers));
    `);
    expect(found).toEqual(Array(3).fill("hello world"));
  });

  it.each(["NodeNext", "Bundler"] as const)("has types for a project with %s resolution", (resolution) => {
    const consumer = project.write(
      `${resolution}.ts`,
      `import { type Agent, createHandler, data, defineAgent, ProtocolError, serve } from "dragoman";
       import { connect, type RemoteAgent, type Task } from "dragoman/client";
       import { dragoman } from "dragoman/express";
       const agent: Agent = defineAgent({ name: "A", description: "B", async *run(turn) {
         yield turn.artifact({ name: "n", parts: [data({ length: turn.text.length })] });
       } });
       export const server = await serve({ agents: { agent }, port: 0 });
       export const port: number = server.port;
       export const remote: RemoteAgent = await connect(server.url);
       export const task: Task = await remote.get("id");
       export const handle: (request: Request) => Promise<Response> = await createHandler({ agents: { agent }, publicUrl: "http://localhost:3000" });
       export const middleware = await dragoman({ agents: { agent }, publicUrl: "https://a.example" });
       export const code: string = new ProtocolError("UNAVAILABLE", "x").code;
       // @ts-expect-error There is no such code.
       new ProtocolError("NO_SUCH_CODE", "x");
      `,
    );
    expect(typeErrors([consumer], { resolution, checkLibraries: true })).toEqual([]);
  });

  it("brings the command line", async () => {
    const cli = join(unpacked, manifest.bin.dragoman);
    const version = await runProgram(process.execPath, [cli, "--version"], { folder: project.folder });
    expect([version.code, version.stdout]).toEqual([0, `${manifest.version}\n`]);
    project.write(
      "agent.ts",
      'import { defineAgent } from "dragoman";\nconst name: string = "Typed";\n' +
        'export default defineAgent({ name, description: "From a module.", run: (turn) => turn.text });\n',
    );
    const served = await serveConfig(
      project.write("dragoman.yaml", "agents: { typed: { module: ./agent.ts } }\n"),
      cli,
    );
    try {
      const agent = await client.connect(served.url);
      expect(agent.card.name).toBe("Typed");
      expect(await agent.send("hello")).toMatchObject({ message: { parts: [{ text: "hello" }] } });
    } finally {
      expect(await served.stop()).toBe(0);
    }
  });
});

/** Exact, so that a release of Node cannot turn a commit red that was green. */
const RUNTIMES = ["22.23.3", "24.21.0"];

/** The program of another version of Node. npm has them as packages; what was fetched stays until the next `npm ci`. */
async function fetchNode(version: string): Promise<string> {
  const program = join(ROOT, "node_modules", ".cache", "node", version, "node");
  if (existsSync(program)) return program;
  const name = `node-${process.platform}-${process.arch}@${version}`;
  const packed = await runProgram("npm", ["pack", name, "--json", "--pack-destination", folder]);
  expect({ name, code: packed.code, stderr: packed.code === 0 ? "" : packed.stderr }).toEqual({
    name,
    code: 0,
    stderr: "",
  });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  // Beside its place and then renamed, so that a run that is cut short leaves no half of a program there.
  const fetched = `${dirname(program)}.${process.pid}`;
  mkdirSync(fetched, { recursive: true });
  const extracted = await runProgram("tar", [
    ...["-xzf", join(folder, filename), "-C", fetched],
    ...["--strip-components=2", "package/bin/node"],
  ]);
  expect(extracted).toEqual({ code: 0, stdout: "", stderr: "" });
  rmSync(dirname(program), { recursive: true, force: true });
  renameSync(fetched, dirname(program));
  return program;
}

describe.each(RUNTIMES)("the package on Node %s", (version) => {
  it("serves, streams, and finds its tasks again in the store of an earlier process", async () => {
    const node = await fetchNode(version);
    const asked = (second: boolean) => `
      import { defineAgent, serve } from "dragoman";
      import { connect } from "dragoman/client";
      import { dragoman } from "dragoman/express";
      import { xiaoyi } from "dragoman/xiaoyi";
      const hello = defineAgent({ name: "Hello", description: "Says hello.", async *run(turn) {
        yield* turn.stream("greeting", ["hello ", turn.text]);
      } });
      const server = await serve({ agents: { hello }, port: 0, grpcPort: 0, store: "sqlite:${version}.db" });
      const texts = ({ artifacts }) => artifacts.map(({ parts }) => parts.map(({ text }) => text).join(""));
      const found = { version: process.versions.node, doors: [typeof dragoman, typeof xiaoyi], before: [], after: [] };
      const agents = [await connect(server.url), await connect(server.url, { binding: "GRPC" })];
      for await (const task of agents[0].list({ includeArtifacts: true })) found.before.push(texts(task));
      if (!${second}) for (const agent of agents) {
        const { task } = await agent.send("world");
        const numbers = [];
        for await (const { number } of agent.stream("again")) numbers.push(number);
        found.after.push([task.status.state, texts(task), numbers.every((number, at) => number === at + 1)]);
      }
      await server.close();
      process.stdout.write(JSON.stringify(found));
    `;
    const doors = ["function", "object"];
    expect(await evaluate(asked(false), node)).toEqual({
      ...{ version, doors, before: [] },
      after: Array(2).fill(["TASK_STATE_COMPLETED", ["hello world"], true]),
    });
    const kept = [["hello again"], ["hello world"], ["hello again"], ["hello world"]];
    expect(await evaluate(asked(true), node)).toEqual({ version, doors, before: kept, after: [] });
  });

  it("runs the command line, and loads agents in TypeScript", async () => {
    const node = await fetchNode(version);
    project.write(
      "typed.ts",
      'import { defineAgent } from "dragoman";\nconst name: string = "Typed";\n' +
        'export default defineAgent({ name, description: "From a module.", run: (turn) => turn.text });\n',
    );
    const settings = "server: { port: 0, grpcPort: 0 }\nagents: { typed: { module: ./typed.ts } }\n";
    const words = [join(unpacked, manifest.bin.dragoman), "doctor", project.write("typed.yaml", settings)];
    const checked = await runProgram(node, words, { folder: project.folder });
    expect({ code: checked.code, stderr: checked.stderr }).toEqual({ code: 0, stderr: "" });
    expect(checked.stdout).toMatch(new RegExp(`ok +node +${version}\\n`));
    expect(checked.stdout).toMatch(/ok +agent typed +Typed/);
  });
});
