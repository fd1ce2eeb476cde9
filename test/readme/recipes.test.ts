/** Every recipe of docs/recipes.md is started as it is written and called over the wire; programs of other pages are run. */
import { spawn } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, textOf } from "../../src/client.ts";
import { cleanEnvironment, ROOT, runProgram } from "../built/cli.ts";
import { createProject, type Project, typeErrors } from "../built/project.ts";
import { freePort } from "../support/lifecycle.ts";
import { blocksOf } from "./blocks.ts";

const blocks = blocksOf("docs/recipes.md");
const ofKind = (kind: string) =>
  blocks.filter((block) => block.kind === kind).map(({ line, text }) => [`docs/recipes.md:${line}`, text] as const);
const PACKAGES = ["@hono", "@types", "express", "fastify", "hono"];

let project: Project;
beforeAll(() => {
  project = createProject();
  for (const name of PACKAGES)
    symlinkSync(join(ROOT, "node_modules", name), join(project.folder, "node_modules", name));
  project.write("hello.ts", ofKind("hello.ts")[0]?.[1] ?? "");
});
afterAll(() => project?.remove());

/** Runs a recipe until `use` is done with it; resolves when it has printed its address. */
async function started(file: string, use: (url: string) => Promise<void>): Promise<void> {
  const environment = cleanEnvironment({ PORT: String(await freePort()) });
  const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), file], { env: environment });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  try {
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.once("data", (line) => resolve(String(line).trim()));
      void ended.then(() => reject(new Error(errors)));
    });
    await use(url);
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

async function greet(url: string): Promise<void> {
  const agent = await connect(url);
  expect(textOf(await agent.send("Ada"))).toBe("Hello, Ada!");
  expect(agent.interface.url).toMatch(url);
  const seen: string[] = [];
  for await (const { event } of agent.stream("Bob")) seen.push(...Object.keys(event));
  expect(seen).toContain("message");
}

describe("recipes", () => {
  it("are of known kinds, and accepted by the compiler", () => {
    // Files of the other recipe are run by test/registry/article-chain.test.ts.
    const programs = blocks.filter(({ language }) => language === "ts");
    expect(new Set(programs.map(({ kind }) => kind))).toEqual(new Set(["hello.ts", "server", "route", "bun"]));
    const files = [...ofKind("server"), ...ofKind("route")].map(([, text], at) =>
      project.write(`checked-${at}.ts`, text),
    );
    // A module that imports a TypeScript file by its name is for a loader to run, not for the compiler to emit.
    expect(typeErrors(files).filter((error) => !error.includes("allowImportingTsExtensions"))).toEqual([]);
  });

  it.each(ofKind("server"))("%s serves", async (place, text) => {
    await started(project.write(`server-${place.split(":")[1]}.ts`, text), greet);
  });

  it.each(ofKind("route"))("%s answers as a route of a framework that takes functions", async (_, text) => {
    const route = await import(pathToFileURL(project.write("route.ts", text)).href);
    const card = await route.GET(new Request("http://localhost:3000/a2a/.well-known/agent-card.json"), { params: {} });
    expect(await card.json()).toMatchObject({ name: "Hello" });
    const answer = await route.POST(
      new Request("http://localhost:3000/a2a/agents/hello/rest/message:send", {
        method: "POST",
        headers: { "content-type": "application/json", "a2a-version": "1.0" },
        body: JSON.stringify({ message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "Ada" }] } }),
      }),
      { params: {} },
    );
    expect(textOf(await answer.json())).toBe("Hello, Ada!");
  });
});

describe("programs of docs/library.md", () => {
  const library = blocksOf("docs/library.md");
  const programs = library.flatMap(({ kind, line, text }, at) =>
    kind === "program" ? [[`docs/library.md:${line}`, text, library[at + 1]] as const] : [],
  );

  it.each(programs)("%s is accepted by the compiler and prints what is shown", async (place, text, output) => {
    expect(output?.kind).toBe("output");
    const file = project.write(`program-${place.split(":")[1]}.ts`, text);
    expect(typeErrors([file])).toEqual([]);
    const loader = ["--import", import.meta.resolve("tsx"), file];
    const { code, stderr, stdout } = await runProgram(process.execPath, loader, { folder: project.folder });
    expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: "", stdout: output?.text });
  });
});
