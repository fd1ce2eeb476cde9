import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openDriver } from "../../store/sqlite/driver.ts";
import { acquireOwnership } from "../../store/sqlite/file-access.ts";
import { migrate } from "../../store/sqlite/schema.ts";
import { checkAgents, checkConfig, checkNode, checkPort } from "../doctor/checks.ts";
import { runInProcess } from "../testing/run-in-process.ts";
import { packageName, scaffold } from "./init.ts";

let folder: string;
beforeEach(() => {
  vi.stubEnv("HOME", "/nonexistent");
  folder = mkdtempSync(join(tmpdir(), "dragoman-local-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const write = (name: string, content: string): string => {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
};

describe("config show", () => {
  it("[A2ACLI_CONFIG_002, A2ACLI_CONFIG_001] tells every setting and where it comes from, but no secret", async () => {
    const file = write("agent.env", "A2ACLI_AGENT_CARD=agent.example\nA2ACLI_TIMEOUT=1s\nA2ACLI_API_KEY=sesame\n");
    vi.stubEnv("A2ACLI_TIMEOUT", "3s");
    const { code, stdout } = await runInProcess("config", "show", "--config", file, "--transport", "JSONRPC");
    expect(code).toBe(0);
    expect(stdout).toContain(`agent-card: agent.example (file ${file})\n`);
    expect(stdout).toContain("timeout: 3s (environment A2ACLI_TIMEOUT)\n");
    expect(stdout).toContain("transport: JSONRPC (flag)\n");
    expect(stdout).toContain("poll-interval: 2s (default)\n");
    expect(stdout).toContain(`api-key: (set) (file ${file})\n`);
    expect(stdout).not.toContain("sesame");
    const json = await runInProcess("config", "show", "--config", file, "-o", "json");
    expect(JSON.parse(json.stdout).settings[0]).toEqual({
      name: "agent-card",
      variable: "A2ACLI_AGENT_CARD",
      value: "agent.example",
      source: `file ${file}`,
    });
  });

  it("tells what a server makes of its configuration", async () => {
    const file = write("dragoman.yaml", "server: { port: 4567 }\nagents:\n  echo: { use: echo }\n");
    const { stdout } = await runInProcess("config", "show", file);
    expect(stdout).toContain(`server.port: 4567 (${file}:1:`);
    expect(stdout).toMatch(/^server\.host: "127\.0\.0\.1" \(default\)$/m);
    const broken = write("broken.yaml", "server: { prot: 1 }\nagents:\n  echo: { use: echo }\n");
    const failed = await runInProcess("config", "show", broken, "-o", "json");
    expect([failed.code, JSON.parse(failed.stdout).error.code]).toEqual([1, "DRAGOMAN_ERR_CONFIG"]);
  });
});

describe("init", () => {
  it.each(["ts", "js"] as const)("writes an agent in %s that compiles", (language) => {
    const files = scaffold({ name: "x", language, dependency: "^1.2.3" });
    expect(Object.keys(files)).toEqual([
      "package.json",
      "dragoman.yaml",
      `agents/hello.${language}`,
      "README.md",
      ".gitignore",
    ]);
    const source = files[`agents/hello.${language}`] ?? "";
    const { diagnostics } = ts.transpileModule(source, {
      fileName: `hello.${language}`,
      reportDiagnostics: true,
      compilerOptions: { module: ts.ModuleKind.ESNext, allowJs: true },
    });
    expect(diagnostics).toEqual([]);
    expect(source.includes(": string")).toBe(language === "ts");
  });

  it("writes a configuration that is valid", async () => {
    const file = write(
      "dragoman.yaml",
      scaffold({ name: "x", language: "ts", dependency: "^1.2.3" })["dragoman.yaml"] ?? "",
    );
    expect((await checkConfig(file)).check).toEqual({
      name: "configuration",
      status: "ok",
      detail: `${file}, 2 agents`,
    });
  });

  it("replaces files only when forced", async () => {
    write("README.md", "mine");
    expect((await runInProcess("init", folder)).code).toBe(1);
    expect(readFileSync(join(folder, "README.md"), "utf8")).toBe("mine");
    const forced = await runInProcess("init", folder, "--force", "--js");
    expect([forced.code, forced.stderr]).toEqual([0, expect.stringContaining("npm install")]);
    expect(readFileSync(join(folder, "README.md"), "utf8")).toContain("agents/hello.js");
  });

  it.each([
    ["My Agent!", "my-agent"],
    ["..", "my-agent"],
    ["ok_1.2", "ok_1.2"],
  ])("names the package of the folder %j", (name, expected) => {
    expect(packageName(name)).toBe(expected);
  });
});

describe("doctor", () => {
  it("finds nothing wrong with a good set-up", async () => {
    const file = write("dragoman.yaml", "server: { port: 0 }\nstore: sqlite:data.db\nagents:\n  echo: { use: echo }\n");
    const { code, stdout } = await runInProcess("doctor", file, "-o", "json");
    expect(code).toBe(0);
    const { checks, healthy } = JSON.parse(stdout);
    expect(healthy).toBe(true);
    expect(checks.map(({ name, status }: { name: string; status: string }) => [name, status])).toEqual([
      ["node", "ok"],
      ["sqlite", "ok"],
      ["configuration", "ok"],
      ["port", "ok"],
      ["store", "ok"],
      ["agent echo", "ok"],
      ["security", "ok"],
    ]);
  });

  it("names what fails and exits 1", async () => {
    const file = write("dragoman.yaml", "agents:\n  x: { use: nothing }\n");
    const { code, stderr, stdout } = await runInProcess("doctor", file);
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/^failed +configuration +.*dragoman\.yaml:2/m);
  });

  it("checks the version of Node, the port and the agents", async () => {
    expect([
      checkNode("18.20.0").status,
      checkNode("20.18.9").status,
      checkNode("20.19.0").status,
      checkNode("24.0.0").status,
    ]).toEqual(["failed", "failed", "ok", "ok"]);
    expect(await checkPort("192.0.2.1", 4000)).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("EADDRNOTAVAIL"),
    });
    const file = write(
      "dragoman.yaml",
      "agents:\n  gone: { module: ./gone.ts }\n  echo: { use: echo }\n  no: { exec: [no-such-program] }\n  sh: { exec: [sh] }\n",
    );
    const { config } = await checkConfig(file);
    if (config === undefined) throw new Error("The configuration should be valid.");
    expect(await checkAgents(config)).toMatchObject([
      { name: "agent gone", status: "failed" },
      { name: "agent echo", status: "ok" },
      { name: "agent no", status: "failed", detail: "no-such-program is not in the PATH" },
      { name: "agent sh", status: "ok" },
    ]);
  });
});

describe("store", () => {
  it("is made by migrate, counted by stats and emptied by prune only with consent", async () => {
    const store = `sqlite:${join(folder, "data.db")}`;
    expect(await runInProcess("store", "stats", "--store", store)).toMatchObject({ code: 1, stdout: "" });
    expect(await runInProcess("store", "migrate", "--store", store)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Schema Version: \d+$/m),
    });
    expect((await runInProcess("store", "stats", "--store", store)).stdout).toContain("Tasks: 0\n");
    const unconfirmed = await runInProcess("store", "prune", "--store", store, "--older-than", "30d");
    expect([unconfirmed.code, unconfirmed.stderr]).toEqual([2, expect.stringContaining("--yes")]);
    const pruned = await runInProcess("store", "prune", "--store", store, "--older-than", "30d", "--yes", "-o", "json");
    expect(JSON.parse(pruned.stdout)).toMatchObject({ removed: 0 });
    expect((await runInProcess("store", "prune", "--store", store, "--older-than", "old")).code).toBe(2);
    expect((await runInProcess("store", "stats", "--store", "memory:")).code).toBe(2);
  });

  it("shows what retention will free, by the times that serve would use", async () => {
    const text = "store: sqlite:data.db\nagents:\n  echo: { use: echo }\n";
    const file = write("dragoman.yaml", text);
    const pruning = write("pruning.yaml", `${text}retention: { compactAfter: 2h, pruneAfter: 30d }\n`);
    await runInProcess("store", "migrate", "--config", file);
    expect((await runInProcess("store", "stats", "--config", file)).stdout).toContain(
      "\nShrinks: yes\nCompact After: 1d\nTasks to Compact: 0\nBytes to Compact: 0\nPrune After: never\n",
    );
    expect((await runInProcess("store", "stats", "--config", pruning)).stdout).toContain(
      "Compact After: 2h\nTasks to Compact: 0\nBytes to Compact: 0\nPrune After: 30d\nTasks to Prune: 0\nBytes to Prune: 0\n",
    );
    const none = { tasks: 0, bytes: 0, next: null };
    const kept = await runInProcess("store", "stats", "--config", file, "-o", "json");
    expect(JSON.parse(kept.stdout)).toMatchObject({
      shrinks: true,
      retention: { compactAfterMs: 86_400_000, compact: none, pruneAfterMs: null, prune: null },
    });
    const pruned = await runInProcess("store", "stats", "--config", pruning, "-o", "json");
    expect(JSON.parse(pruned.stdout).retention).toEqual({
      compactAfterMs: 7_200_000,
      compact: none,
      pruneAfterMs: 2_592_000_000,
      prune: none,
    });
  });

  it("is rewritten by vacuum, but not while a server uses it", async () => {
    const path = join(folder, "data.db");
    const store = `sqlite:${path}`;
    const driver = await openDriver(path);
    driver.exec("PRAGMA auto_vacuum = NONE");
    migrate(driver, 0);
    driver.close();
    expect((await runInProcess("store", "stats", "--store", store)).stdout).toContain(
      "Shrinks: no; run: dragoman store vacuum\n",
    );
    const release = await acquireOwnership(path);
    expect(await runInProcess("store", "vacuum", "--store", store)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is in use by another dragoman process[\s\S]*Hint: Stop the process/),
    });
    release();
    const done = await runInProcess("store", "vacuum", "--store", store, "-o", "json");
    expect(JSON.parse(done.stdout)).toMatchObject({ store: `sqlite ${path}`, bytes: expect.any(Number) });
    expect((await runInProcess("store", "stats", "--store", store)).stdout).toContain("Shrinks: yes\n");
    expect((await runInProcess("store", "vacuum", "--store", `${store}-none`)).code).toBe(1);
    expect((await runInProcess("store", "vacuum", "--store", "memory:")).code).toBe(2);
  });
});
