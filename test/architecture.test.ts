import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { installedExtensions } from "../src/core/extension/installed.ts";
import { COMMAND_OWNERS, KEY_OWNERS, STORE_OWNERS } from "../src/core/extension/missing.ts";
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
    expect(files.map(({ path }) => path)).toContain("core/engine/engine.ts");
  });

  it("keep the dependency rule", () => {
    expect(violationsOf(files, MANIFEST)).toEqual([]);
  });

  it("have a README in every part", () => {
    const readmes = new Set(
      ["core", "features"]
        .flatMap((top) => readdirSync(join(SRC, top)).map((name) => `${top}/${name}`))
        .filter((folder) => existsSync(join(SRC, folder, "README.md"))),
    );
    expect(
      foldersWithoutReadme(
        files.map(({ path }) => path),
        readmes,
      ),
    ).toEqual([]);
  });
});

describe("the names of features", () => {
  it("are known to the core, which says what it lacks without them", async () => {
    await Promise.all(
      installedExtensions().map(async (extension) => {
        const { name, stores = {}, commands, config = {} } = extension;
        const parts = typeof config === "function" ? await config() : config;
        const kinds = [...Object.values(parts.agentKinds ?? {}), ...Object.values(parts.builtinAgents ?? {})];
        const keys = [
          ...Object.keys(parts.sections ?? {}),
          ...Object.keys(parts.agentKeys ?? {}).map((key) => `agents.*.${key}`),
          ...Object.keys(parts.builtinAgents ?? {}).map((value) => `agents.*.use.${value}`),
          ...kinds.flatMap((kind) => Object.keys(kind.keys ?? {})).map((key) => `agents.*.${key}`),
        ];
        expect(
          keys.filter((key) => !(key in KEY_OWNERS)),
          name,
        ).toEqual([]);
        expect(Object.keys(stores), name).toEqual(namesOf(STORE_OWNERS, name));
        const program = new Command();
        program.command("store");
        commands?.(program, () => async () => {});
        const added = program.commands.flatMap((command) =>
          command.name() === "store" ? command.commands.map((below) => `store ${below.name()}`) : [command.name()],
        );
        expect(added.sort(), name).toEqual(namesOf(COMMAND_OWNERS, name));
        expect(
          namesOf(KEY_OWNERS, name).filter((key) => !keys.includes(key)),
          name,
        ).toEqual([]);
      }),
    );
  });
});

const namesOf = (owners: Readonly<Record<string, string>>, extension: string) =>
  Object.keys(owners).filter((name) => owners[name] === extension);

describe("the rule", () => {
  const check = (planted: Record<string, string>) =>
    violationsOf(
      Object.entries(planted).map(([path, text]) => parse({ path, text })),
      MANIFEST,
    );

  it.each([
    ["core/model/task.ts", 'import { x } from "../wire/sse.ts";', "core/model must not import core/wire/sse.ts"],
    [
      "core/model/task.ts",
      'import type { X } from "../engine/agent.ts";',
      "core/model must not import core/engine/agent.ts",
    ],
    ["core/model/task.ts", 'import { x } from "node:crypto";', "must not import node:crypto"],
    [
      "core/wire/sse.ts",
      'export { x } from "../dialects/contract.ts";',
      "core/wire must not import core/dialects/contract.ts",
    ],
    ["core/engine/run.ts", 'import { x } from "../store/open.ts";', "core/engine must not import core/store/open.ts"],
    [
      "core/engine/run.ts",
      'const x = await import("../store/memory/memory-store.ts");',
      "core/engine must not import core/store/memory",
    ],
    [
      "core/engine/run.ts",
      'type X = import("../server/serve.ts").ServeOptions;',
      "core/engine must not import core/server/serve.ts",
    ],
    [
      "core/store/open.ts",
      'import { x } from "../engine/engine.ts";',
      "core/store must not import core/engine/engine.ts",
    ],
    [
      "core/agents/echo.ts",
      'import { x } from "../server/serve.ts";',
      "core/agents must not import core/server/serve.ts",
    ],
    ["core/server/serve.ts", 'import { x } from "../cli/run.ts";', "core/server must not import core/cli/run.ts"],
    ["core/engine/run.ts", 'import { v7 } from "uuid";', "core/engine must not import the package uuid"],
    ["core/server/serve.ts", 'import express from "express";', "core/server must not import the package express"],
    ["core/server/serve.ts", 'import { x } from "../agents/testing/turns.ts";', "which is for tests"],
    ["core/novelty/x.ts", 'import { x } from "../model/task.ts";', "has no place in the rule"],
  ])("refuses in %s: %s", (path, text, complaint) => {
    expect(check({ [path]: text })).toEqual([expect.stringContaining(complaint)]);
  });

  it("keeps dialects apart and unnamed", () => {
    const dialect = {
      "core/dialects/one/index.ts": "export const one = 1;",
      "core/dialects/two/index.ts": "export const two = 2;",
    };
    const found = check({
      ...dialect,
      "core/dialects/one/decode.ts": 'import { two } from "../two/index.ts";',
      "core/dialects/shared/join.ts": 'export const preferred = "one";',
      "core/engine/run.ts": 'export const isOld = (name: string) => name === "two";',
      "core/client/caller.ts": 'import { one } from "../dialects/one/index.ts";',
      "core/client/dialects.ts": 'import { one } from "../dialects/one/index.ts";',
      "core/server/dialects.ts": 'import { two } from "../dialects/two/index.ts"; export const name = "two";',
    });
    expect(found).toEqual([
      "core/dialects/one/decode.ts: a dialect must not import another (core/dialects/two/index.ts)",
      "core/client/caller.ts: only core/client/dialects.ts names dialects",
      "core/dialects/one/decode.ts: names the dialect two",
      "core/dialects/shared/join.ts: names the dialect one",
      "core/engine/run.ts: names the dialect two",
    ]);
  });

  it("keeps features apart, and simulators from the code that they test", () => {
    const found = check({
      "features/chat/server/open.ts": 'import type { X } from "../../xiaoyi/server/open.ts";',
      "features/llm/writers.ts":
        'import { x } from "../writers/index.ts"; import { y } from "../../core/model/task.ts";',
      "features/xiaoyi/simulator/cloud.ts": 'import { x } from "../codec/parts.ts";',
      "features/conformance/run.ts": 'import { x } from "../../core/client/connect.ts";',
      "features/conformance/cli/run.ts": 'import { x } from "../../../core/client/connect.ts";',
    });
    expect(found).toEqual([
      "features/chat/server/open.ts: features/chat must not import features/xiaoyi/server/open.ts",
      "features/xiaoyi/simulator/cloud.ts: features/xiaoyi/simulator must not import features/xiaoyi/codec/parts.ts",
      "features/conformance/run.ts: features/conformance must not import core/client/connect.ts",
    ]);
  });

  it.each([
    ["core/engine/run.ts", "const now = Date.now();", "Date.now"],
    ["core/engine/run.ts", "const clock = { now: Date.now };", "Date.now"],
    ["core/engine/run.ts", "const now = new Date();", "new Date()"],
    ["core/dialects/one/encode.ts", "const chance = Math.random();", "Math.random"],
    ["core/dialects/one/encode.ts", 'import { randomUUID } from "node:crypto";', "randomUUID"],
    ["core/store/open.ts", 'console.error("no");', "console"],
    ["core/cli/run.ts", 'console.log("no");', "console"],
  ])("refuses in %s: %s", (path, text, name) => {
    expect(check({ [path]: text })).toEqual([`${path}: uses ${name}`]);
  });

  it("is not misled by comments, strings, dates that were given or tests", () => {
    const found = check({
      "core/engine/run.ts":
        '// console.log(Date.now())\nconst a = "Date.now()"; const b = new Date(5); const c = x.console;',
      "core/engine/run.test.ts": 'import { createMemoryStore } from "../store/memory/memory-store.ts"; Date.now();',
    });
    expect(found).toEqual([]);
  });

  it("measures files", () => {
    const lines = (count: number) => "const x = 1;\n".repeat(count);
    expect(check({ "core/store/a.ts": lines(400), "core/store/b.test.ts": lines(600) })).toEqual([]);
    expect(check({ "core/store/a.ts": lines(401), "core/store/b.test.ts": lines(601) })).toEqual([
      "core/store/a.ts: has 401 lines, more than 400",
      "core/store/b.test.ts: has 601 lines, more than 600",
    ]);
  });

  it("asks comments to belong to the file or to a declaration", () => {
    const attached =
      "#!/usr/bin/env node\n/** The file. */\n\nconst x = 1;\n\n/**\n * The next line.\n */\nconst y = 2;\n";
    expect(check({ "core/cli/a.ts": attached })).toEqual([]);
    expect(check({ "core/cli/a.ts": `${attached}\n/**\n * A part.\n */\n\nconst z = 3;\n` })).toEqual([
      "core/cli/a.ts:11: a comment that belongs to no declaration",
    ]);
  });

  it("finds cycles of values, and lets types refer to each other", () => {
    const cyclic = {
      "core/store/a.ts": 'import { b } from "./b.ts";',
      "core/store/b.ts": 'export { a } from "./a.ts";',
    };
    expect(check(cyclic)).toEqual(["files import each other: core/store/a.ts -> core/store/b.ts -> core/store/a.ts"]);
    const typed = {
      "core/store/a.ts": 'import { b } from "./b.ts";',
      "core/store/b.ts": 'import { type A } from "./a.ts";',
    };
    expect(check(typed)).toEqual([]);
  });

  it("finds folders that import each other", () => {
    const found = check({
      "core/wire/sse.ts": 'import type { Task } from "../model/task.ts";',
      "core/model/task.ts": 'import type { Sse } from "../wire/sse.ts";',
    });
    expect(found).toContain("folders import each other: core/wire -> core/model -> core/wire");
  });

  it("asks for READMEs", () => {
    expect(foldersWithoutReadme(["core/store/a.ts", "core/engine/b.ts", "index.ts"], new Set(["core/store"]))).toEqual([
      "core/engine: has no README.md",
    ]);
  });
});
