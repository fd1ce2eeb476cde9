/** What the documentation shows is done, for real: agents are served, clients run, commands typed. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { MODULE_EXTENSIONS } from "../../src/core/agents/load-module.ts";
import { checkSecurity } from "../../src/core/cli/doctor/security.ts";
import { ERRORS } from "../../src/core/dialects/a2a-v1/errors.ts";
import { parseConfig } from "../../src/core/server/config/load.ts";
import { CLI, ROOT, runProgram, type ServedProcess, serveConfig } from "../built/cli.ts";
import { createProject, type Project, typeErrors } from "../built/project.ts";
import { type Block, blocksOf, commandsOf, parseBlocks } from "./blocks.ts";

const PAGES = [
  "README.md",
  "docs/agents.md",
  "docs/protocol.md",
  "docs/security.md",
  "docs/xiaoyi.md",
  "docs/xiaoyi.zh.md",
];
/** Its blocks are those of the README, which are run there. */
const TRANSLATED = "README.zh.md";
const DOCUMENTED = "http://127.0.0.1:4000";
const DOCUMENTED_GRPC = "127.0.0.1:4001";
/** One of them examines a whole server. */
const COMMAND_MS = 180_000;
const blocks = PAGES.flatMap(blocksOf);
const place = ({ page, line }: Block) => `${page}:${line}`;
const ofKind = (kind: string) =>
  blocks.filter((block) => block.kind === kind).map((block) => [place(block), block] as const);

describe("blocks", () => {
  it("are found with their place, language and kind", () => {
    expect(parseBlocks("x.md", "a\n\n```sh run\necho 1\n```\n\n```yaml config\na: 1\nb: 2\n```\n")).toEqual([
      { page: "x.md", line: 4, language: "sh", kind: "run", text: "echo 1\n" },
      { page: "x.md", line: 8, language: "yaml", kind: "config", text: "a: 1\nb: 2\n" },
    ]);
    expect(commandsOf("# why\none \\\n  two\n\nthree\n")).toEqual(["one two", "three"]);
  });

  it("are all of a kind that is checked", () => {
    const kinds = ["agent", "banner", "client", "config", "install", "run", "setup"];
    expect(blocks.filter(({ kind }) => !kinds.includes(kind)).map(place)).toEqual([]);
    expect([...new Set(blocks.map(({ kind }) => kind))].sort()).toEqual(kinds);
  });

  it(`of ${TRANSLATED} are those of README.md, under as many headings`, () => {
    const shown = (page: string) => blocksOf(page).map(({ kind, language, text }) => ({ language, kind, text }));
    expect(shown(TRANSLATED)).toEqual(shown("README.md"));
    const headings = (page: string) =>
      readFileSync(join(ROOT, page), "utf8")
        .replace(/^```[\s\S]*?^```/gm, "")
        .match(/^#+(?= )/gm);
    expect(headings(TRANSLATED)).toEqual(headings("README.md"));
  });

  it("only set up with scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const words = ofKind("setup").flatMap(([, { text }]) => commandsOf(text).flatMap((line) => line.split(" && ")));
    expect(words.sort()).toEqual(["npm ci", "npm ci", "npm start", "npm test"]);
    expect(scripts).toMatchObject({
      prepack: "node scripts/build.mjs --types",
      prestart: "node scripts/build.mjs",
      test: expect.stringMatching(/^npm run build && vitest run/),
    });
    expect(scripts.start).toBe("node dist/cli/main.js serve dragoman.yaml");
  });
});

describe("configurations", () => {
  const read = (source: string, { text }: Block) => {
    const variables = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [
      name,
      randomBytes(32).toString("hex"),
    ]);
    return parseConfig(text, { source, folder: ROOT, environment: Object.fromEntries(variables) });
  };

  it.each(ofKind("config"))("%s is valid", (source, block) => {
    expect(read(source, block).agents.size).toBeGreaterThan(0);
  });

  const advised = ofKind("config").filter(([, { page }]) => page === "docs/security.md");
  it.each(advised)("%s has nothing that doctor calls weak", async (source, block) => {
    const checks = await checkSecurity(read(source, block), source);
    expect(checks.map(({ name, status, detail }) => [name, status, detail])).toEqual([
      ["security", "ok", "nothing weak was found"],
    ]);
  });
});

describe("programs", () => {
  let project: Project;
  let served: ServedProcess;
  const agents = ofKind("agent");
  const clients = ofKind("client");

  beforeAll(async () => {
    project = createProject();
    agents.forEach(([, { text }], index) => {
      project.write(`agents/agent-${index}.ts`, text);
    });
    const entries = agents.map((_, index) => `  agent-${index}: { module: ./agents/agent-${index}.ts }`);
    served = await serveConfig(project.write("dragoman.yaml", `agents:\n${entries.join("\n")}\n`));
  });
  afterAll(async () => {
    await served?.stop();
    project?.remove();
  });

  it("are accepted by the compiler", () => {
    const files = agents.map((_, index) => join(project.folder, "agents", `agent-${index}.ts`));
    clients.forEach(([, { text }], index) => {
      files.push(project.write(`clients/client-${index}.ts`, text));
    });
    expect(files.length).toBeGreaterThanOrEqual(4);
    expect(typeErrors(files)).toEqual([]);
  });

  it("notice a wrong program", () => {
    const file = project.write(
      "agents/wrong.ts",
      'import { defineAgent } from "dragoman";\ndefineAgent({ name: 1 });\n',
    );
    expect(typeErrors([file])).toEqual([expect.stringContaining("wrong.ts:2")]);
  });

  it.each(agents.map(([source], index) => [source, index] as const))("the agent at %s answers", async (_, index) => {
    const agent = await connect(`${served.url}/agents/agent-${index}`);
    const outcome = await agent.send("tea and biscuits");
    if ("message" in outcome) expect(outcome.message.parts).not.toEqual([]);
    else {
      expect(outcome.task.status.state).toBe("TASK_STATE_COMPLETED");
      expect(outcome.task.artifacts?.length).toBeGreaterThan(0);
    }
  });

  it("the README's agent counts, reads back and asks", async () => {
    const agent = await connect(`${served.url}/agents/agent-0`);
    const outcome = await agent.send("tea and biscuits");
    expect(outcome).toMatchObject({
      task: {
        artifacts: [
          { name: "count", parts: [{ data: { words: 3 } }] },
          { name: "words", parts: [{ text: "tea and biscuits " }] },
        ],
      },
    });
    const asked = await agent.send({ message: { parts: [{ data: null }] } });
    expect(asked).toMatchObject({ task: { status: { state: "TASK_STATE_INPUT_REQUIRED" } } });
  });
});

describe("the repository's own configuration, served", () => {
  let served: ServedProcess;
  beforeAll(async () => {
    served = await serveConfig(join(ROOT, "dragoman.yaml"));
  });
  afterAll(async () => {
    expect(await served?.stop()).toBe(0);
  });
  const here = (text: string) =>
    text
      .replaceAll(DOCUMENTED, served.url)
      .replaceAll(DOCUMENTED_GRPC, /^gRPC: (.*)$/m.exec(served.banner)?.[1] ?? "no gRPC");

  it.each(ofKind("banner"))("says what %s shows", (_, { text }) => {
    for (const line of here(text).trimEnd().split("\n")) {
      const expected = line.replace(/…$/, "").replace(/ +/g, " ");
      expect(served.banner.replace(/ +/g, " ")).toContain(expected);
    }
  });

  it.each(ofKind("client"))("answers the client at %s", async (_, { text }) => {
    const project = createProject();
    try {
      const file = project.write("client.ts", here(text));
      const loader = import.meta.resolve("tsx");
      const program = ["--import", loader, file];
      const { code, stdout, stderr } = await runProgram(process.execPath, program, { folder: project.folder });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("TASK_STATE_COMPLETED");
      expect(stdout).toContain("1 task");
      expect(stdout).toContain("statusUpdate");
    } finally {
      project.remove();
    }
  });

  const commands = ofKind("run").flatMap(([source, { text }]) =>
    commandsOf(text).map((line) => [source, line] as const),
  );

  it("is asked by enough commands", () => {
    expect(commands.length).toBeGreaterThanOrEqual(10);
  });

  it.each(commands)(
    "%s: %s",
    async (_, line) => {
      const typed = here(line).replace(/^npx dragoman /, `"${process.execPath}" "${CLI}" `);
      const { code, stdout, stderr } = await runProgram("bash", ["-c", typed]);
      expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout.trim()).not.toBe("");
    },
    COMMAND_MS,
  );

  it("npx finds the command in the repository", async () => {
    const { code, stdout } = await runProgram("npx", ["--offline", "dragoman", "--version"], {
      environment: { HOME: process.env.HOME ?? "" },
    });
    expect([code, stdout.trim()]).toEqual([0, "0.1.0"]);
  });
});

describe("the pages about modules", () => {
  it.each(["docs/agents.md", "docs/configuration.md"])("%s names every extension that is loaded", (page) => {
    const line = /^.*(?:A module is named|`defineAgent` returns).*$/m.exec(readFileSync(join(ROOT, page), "utf8"))?.[0];
    expect(line?.match(/(?<=`)\.m?[jt]s(?=`)/g)).toEqual(MODULE_EXTENSIONS);
  });
});

describe("docs/protocol.md", () => {
  it("lists every error as it is", () => {
    const text = readFileSync(join(ROOT, "docs/protocol.md"), "utf8");
    const rows = [...text.matchAll(/^\| `([A-Z_]+)` +\| +(-\d+) \| +(\d+) \| `([A-Z_]+)` +\|$/gm)];
    const listed = rows.map(([, code, jsonRpc, http, grpcStatus]) => [code, Number(jsonRpc), Number(http), grpcStatus]);
    const actual = Object.entries(ERRORS).map(([code, { jsonRpc, http, grpcStatus }]) => [
      code,
      jsonRpc,
      http,
      grpcStatus,
    ]);
    expect(listed).toEqual(actual);
  });
});
