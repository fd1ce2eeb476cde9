/** The package as it would be published: packed, unpacked into a project of its own, imported, typed and run. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import { BUILT_IN } from "../../tsdown.config.ts";
import { ROOT, runProgram, serveConfig } from "../built/cli.ts";
import { createProject, type Project, typeErrors } from "../built/project.ts";

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

let folder: string;
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
  const extracted = await runProgram("tar", ["-xzf", join(folder, filename), "-C", folder]);
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
async function evaluate(code: string): Promise<unknown> {
  const {
    code: exit,
    stdout,
    stderr,
  } = await runProgram(process.execPath, [project.write("run.mjs", code)], {
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
        "dist",
        "package.json",
        "proto",
        "schema",
      ]),
    );
    const allowed = /^(dist|proto|schema)(\/|$)|^(CHANGELOG\.md|LICENSE|README(\.zh)?\.md|package\.json)$/;
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

  it("is found in order by publint", async () => {
    const { messages } = await publint({ pkgDir: unpacked, pack: false, strict: true });
    expect(messages).toEqual([]);
  });
});

describe("the installed package", () => {
  it("is imported by its names", async () => {
    const found = await evaluate(`
      const doors = ["dragoman", "dragoman/client", "dragoman/express", "dragoman/xiaoyi"];
      const modules = await Promise.all(doors.map((door) => import(door)));
      process.stdout.write(JSON.stringify(modules.map((module) => Object.keys(module).sort())));
    `);
    expect(found).toEqual([
      [
        "GuardedFetchError",
        "ProtocolError",
        "SILENT_LOG",
        "bytesOf",
        "createGuardedFetch",
        "createHandler",
        "data",
        "defineAgent",
        "file",
        "serve",
        "text",
        "textOf",
      ],
      ["ConnectionError", "ProtocolError", "bytesOf", "connect", "data", "fetchCard", "file", "text", "textOf"],
      ["dragoman"],
      ["xiaoyi"],
    ]);
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
      const agent = await connect(served.url);
      expect(agent.card.name).toBe("Typed");
      expect(await agent.send("hello")).toMatchObject({ message: { parts: [{ text: "hello" }] } });
    } finally {
      expect(await served.stop()).toBe(0);
    }
  });
});
