import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BUILT_IN } from "../tsdown.config.ts";
import { foldersWithoutReadme, violationsOf } from "./architecture/rules.ts";
import { parse, readSources } from "./architecture/source.ts";

const SRC = fileURLToPath(new URL("../src", import.meta.url));
const { dependencies, peerDependencies } = readManifest();
const MANIFEST = { dependencies: [...Object.keys({ ...dependencies, ...peerDependencies }), ...BUILT_IN] };

function readManifest(): Readonly<Record<"dependencies" | "peerDependencies", Record<string, string>>> {
  return JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
}

describe("the sources", () => {
  const files = readSources(SRC).map(parse);

  it("are all there", () => {
    expect(files.length).toBeGreaterThan(100);
    expect(files.map(({ path }) => path)).toContain("engine/engine.ts");
  });

  it("keep the dependency rule", () => {
    expect(violationsOf(files, MANIFEST)).toEqual([]);
  });

  it("have a README in every top folder", () => {
    const folders = readdirSync(SRC, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const readmes = new Set(
      folders.filter(({ name }) => existsSync(join(SRC, name, "README.md"))).map(({ name }) => name),
    );
    expect(
      foldersWithoutReadme(
        files.map(({ path }) => path),
        readmes,
      ),
    ).toEqual([]);
  });
});

describe("the rule", () => {
  const check = (planted: Record<string, string>) =>
    violationsOf(
      Object.entries(planted).map(([path, text]) => parse({ path, text })),
      MANIFEST,
    );

  it.each([
    ["model/task.ts", 'import { x } from "../wire/sse.ts";', "model must not import wire/sse.ts"],
    ["model/task.ts", 'import type { X } from "../engine/agent.ts";', "model must not import engine/agent.ts"],
    ["model/task.ts", 'import { x } from "node:crypto";', "must not import node:crypto"],
    ["wire/sse.ts", 'export { x } from "../dialects/contract.ts";', "wire must not import dialects/contract.ts"],
    ["engine/run.ts", 'import { x } from "../store/open.ts";', "engine must not import store/open.ts"],
    [
      "engine/run.ts",
      'const x = await import("../store/memory/memory-store.ts");',
      "engine must not import store/memory",
    ],
    ["engine/run.ts", 'type X = import("../server/serve.ts").ServeOptions;', "engine must not import server/serve.ts"],
    ["store/open.ts", 'import { x } from "../engine/engine.ts";', "store must not import engine/engine.ts"],
    ["agents/echo.ts", 'import { x } from "../server/serve.ts";', "agents must not import server/serve.ts"],
    ["server/serve.ts", 'import { x } from "../cli/run.ts";', "server must not import cli/run.ts"],
    ["engine/run.ts", 'import { v7 } from "uuid";', "engine must not import the package uuid"],
    ["server/serve.ts", 'import express from "express";', "server must not import the package express"],
    ["server/serve.ts", 'import { x } from "../agents/testing/turns.ts";', "which is for tests"],
    ["novelty/x.ts", 'import { x } from "../model/task.ts";', "has no place in the rule"],
  ])("refuses in %s: %s", (path, text, complaint) => {
    expect(check({ [path]: text })).toEqual([expect.stringContaining(complaint)]);
  });

  it("keeps dialects apart and unnamed", () => {
    const dialect = {
      "dialects/one/index.ts": "export const one = 1;",
      "dialects/two/index.ts": "export const two = 2;",
    };
    const found = check({
      ...dialect,
      "dialects/one/decode.ts": 'import { two } from "../two/index.ts";',
      "dialects/shared/join.ts": 'export const preferred = "one";',
      "engine/run.ts": 'export const isOld = (name: string) => name === "two";',
      "client/caller.ts": 'import { one } from "../dialects/one/index.ts";',
      "client/dialects.ts": 'import { one } from "../dialects/one/index.ts";',
      "server/dialects.ts": 'import { two } from "../dialects/two/index.ts"; export const name = "two";',
    });
    expect(found).toEqual([
      "dialects/one/decode.ts: a dialect must not import another (dialects/two/index.ts)",
      "client/caller.ts: only client/dialects.ts names dialects",
      "dialects/one/decode.ts: names the dialect two",
      "dialects/shared/join.ts: names the dialect one",
      "engine/run.ts: names the dialect two",
    ]);
  });

  it("keeps chat networks to one file of the client", () => {
    const found = check({
      "channels/networks.ts": "export const networks = [];",
      "channels/irc.ts": "export const irc = {};",
      "client/dialects.ts": 'const load = () => import("../channels/networks.ts");',
      "client/connect.ts": 'import { networks } from "../channels/networks.ts";',
      "client/call/call.ts": 'import { irc } from "../../channels/irc.ts";',
    });
    expect(found).toEqual([
      "client/connect.ts: only client/dialects.ts names chat networks",
      "client/call/call.ts: client must not import channels/irc.ts",
    ]);
  });

  it("lets dialects of one family share a vocabulary, which is no dialect", () => {
    const found = check({
      "dialects/one/words.ts": 'export const words = "one";',
      "dialects/one-near/index.ts": 'import { words } from "../one/words.ts"; export { words };',
      "dialects/one-far/index.ts": 'import { near } from "../one-near/index.ts"; export { near };',
      "dialects/other/index.ts": 'import { words } from "../one/words.ts"; export { words };',
      "engine/run.ts": 'export const isOne = (name: string) => name === "one";',
    });
    expect(found).toEqual([
      "dialects/one-far/index.ts: a dialect must not import another (dialects/one-near/index.ts)",
      "dialects/other/index.ts: a dialect must not import another (dialects/one/words.ts)",
      "dialects/one-far/index.ts: names the dialect one-near",
    ]);
  });

  it.each([
    ["engine/run.ts", "const now = Date.now();", "Date.now"],
    ["engine/run.ts", "const clock = { now: Date.now };", "Date.now"],
    ["engine/run.ts", "const now = new Date();", "new Date()"],
    ["dialects/one/encode.ts", "const chance = Math.random();", "Math.random"],
    ["dialects/one/encode.ts", 'import { randomUUID } from "node:crypto";', "randomUUID"],
    ["store/open.ts", 'console.error("no");', "console"],
    ["cli/run.ts", 'console.log("no");', "console"],
  ])("refuses in %s: %s", (path, text, name) => {
    expect(check({ [path]: text })).toEqual([`${path}: uses ${name}`]);
  });

  it("is not misled by comments, strings, dates that were given or tests", () => {
    const found = check({
      "engine/run.ts":
        '// console.log(Date.now())\nconst a = "Date.now()"; const b = new Date(5); const c = x.console;',
      "engine/run.test.ts": 'import { createMemoryStore } from "../store/memory/memory-store.ts"; Date.now();',
    });
    expect(found).toEqual([]);
  });

  it("measures files", () => {
    const lines = (count: number) => "const x = 1;\n".repeat(count);
    expect(check({ "store/a.ts": lines(400), "store/b.test.ts": lines(600) })).toEqual([]);
    expect(check({ "store/a.ts": lines(401), "store/b.test.ts": lines(601) })).toEqual([
      "store/a.ts: has 401 lines, more than 400",
      "store/b.test.ts: has 601 lines, more than 600",
    ]);
  });

  it("asks comments to belong to the file or to a declaration", () => {
    const attached =
      "#!/usr/bin/env node\n/** The file. */\n\nconst x = 1;\n\n/**\n * The next line.\n */\nconst y = 2;\n";
    expect(check({ "cli/a.ts": attached })).toEqual([]);
    expect(check({ "cli/a.ts": `${attached}\n/**\n * A part.\n */\n\nconst z = 3;\n` })).toEqual([
      "cli/a.ts:11: a comment that belongs to no declaration",
    ]);
  });

  it("finds cycles of values, and lets types refer to each other", () => {
    const cyclic = { "store/a.ts": 'import { b } from "./b.ts";', "store/b.ts": 'export { a } from "./a.ts";' };
    expect(check(cyclic)).toEqual(["files import each other: store/a.ts -> store/b.ts -> store/a.ts"]);
    const typed = { "store/a.ts": 'import { b } from "./b.ts";', "store/b.ts": 'import { type A } from "./a.ts";' };
    expect(check(typed)).toEqual([]);
  });

  it("finds folders that import each other", () => {
    const found = check({
      "wire/sse.ts": 'import type { Task } from "../model/task.ts";',
      "model/task.ts": 'import type { Sse } from "../wire/sse.ts";',
    });
    expect(found).toContain("folders import each other: wire -> model -> wire");
  });

  it("asks for READMEs", () => {
    expect(foldersWithoutReadme(["store/a.ts", "engine/b.ts", "index.ts"], new Set(["store"]))).toEqual([
      "engine: has no README.md",
    ]);
  });
});
