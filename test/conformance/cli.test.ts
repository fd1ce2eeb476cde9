import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import type { Report } from "../../src/features/conformance/index.ts";
import { createTckAgent } from "../../src/features/writers/tck.ts";
import { createFolder, startServer } from "../support/lifecycle.ts";
import { drop, get } from "./paths.ts";
import { startProxy } from "./proxy.ts";

const agents = { tck: createTckAgent({ streamingTimeoutMs: 100 }) };
const folder = createFolder();
const server = await startServer({ agents });
const proxy = await startProxy();
const spoiled = await startServer({ agents, publicUrl: proxy.url });
proxy.to(`http://127.0.0.1:${spoiled.port}`);
proxy.spoil({
  answer: ({ body }) => {
    if (get(body, "error.code") === -32001) drop(body, "jsonrpc");
  },
});

const conformance = (...words: readonly string[]) => runInProcess("conformance", ...words);
const narrow = ["--transport", "JSONRPC", "--a2a-version", "1.0"];

describe("dragoman conformance", () => {
  it("[A2ACLI_CONFORM_001] reports as text, on stderr what is being tested, and ends well", async () => {
    const { code, stderr, stdout } = await conformance(
      "-a",
      server.url,
      ...narrow,
      "--level",
      "must",
      "--only",
      "get-task",
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Agent: Conformance 1\.0\.0\nCard: http/);
    expect(stdout).toContain("MUST: 1 passed, 0 failed, 0 not applicable\n");
    expect(stdout).toMatch(/Conformant: yes\n$/);
    expect(stderr).toMatch(/^Testing JSONRPC, A2A 1\.0, http/);
  });

  it("ends with 1 where a MUST fails, with a report in JSON and one in JUnit's form", async () => {
    const junit = join(folder, "report.xml");
    const only = ["--only", "get-unknown-task", "--only", "JSONRPC-FMT-001"];
    const { code, stderr, stdout } = await conformance(
      "-a",
      proxy.url,
      ...narrow,
      ...only,
      "-o",
      "json",
      "--junit",
      junit,
    );
    expect(code).toBe(1);
    const report = JSON.parse(stdout) as Report;
    expect(report).toMatchObject({ schemaVersion: 1, conformant: false, complete: true });
    expect(report.tally.MUST).toEqual({ passed: 1, failed: 1, notShown: 0 });
    expect(stderr).toMatch(/Failed JSONRPC-FMT-001 \(responses-formed\): jsonrpc is nothing, not "2\.0"/);
    expect(await readFile(junit, "utf8")).toContain("<failure message=");
  });

  it("writes several reports at once, replaces older ones and leaves nothing else behind", async () => {
    const place = join(folder, "reports");
    await mkdir(place);
    await writeFile(join(place, "old.md"), "old");
    await symlink("old.md", join(place, "report.md"));
    const names = ["junit=report.xml", "json=report.json", "markdown=report.md"];
    const reports = names.flatMap((name) => ["--report", name.replace("=", `=${place}/`)]);
    const { code, stdout } = await conformance("-a", proxy.url, ...narrow, "--only", "JSONRPC-FMT-001", ...reports);
    expect(code).toBe(1);
    expect(stdout).toMatch(/Conformant: no\n$/);
    expect((await readdir(place)).sort()).toEqual(["old.md", "report.json", "report.md", "report.xml"]);
    expect(await readFile(join(place, "report.xml"), "utf8")).toContain("<failure message=");
    expect(JSON.parse(await readFile(join(place, "report.json"), "utf8"))).toMatchObject({ conformant: false });
    expect(await readFile(join(place, "old.md"), "utf8")).toMatch(/^# A2A conformance of Conformance 1\.0\.0\n/);
  });

  it("also writes the reports of a run that was cut short", async () => {
    const file = join(folder, "cut.json");
    const { code } = await conformance("-a", server.url, "--timeout", "150ms", "--report", `json=${file}`);
    expect(code).toBe(5);
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ complete: false });
  });

  it("keeps credentials out of everything it says", async () => {
    const markdown = join(folder, "secrets.md");
    const secrets = ["--bearer", "first-secret", "--other-caller", "Authorization: Bearer second-secret"];
    const { stderr, stdout } = await conformance(
      "-a",
      proxy.url,
      ...narrow,
      "--only",
      "JSONRPC-FMT-001",
      ...secrets,
      "-o",
      "json",
      "--report",
      `markdown=${markdown}`,
    );
    expect(stdout).toContain("[redacted]");
    expect(stdout + stderr + (await readFile(markdown, "utf8"))).not.toMatch(/first-secret|second-secret/);
  });

  it("lists what it tests, without an agent", async () => {
    const { code, stdout } = await conformance("--list");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^CARD-DISC-001 +MUST +1\.0 §8\.2, 0\.3 §5\.3 +The card/);
    const listed = JSON.parse((await conformance("--list", "-o", "json")).stdout);
    expect(listed.requirements.length).toBeGreaterThan(100);
  });

  it.each([
    [["--level", "maximum"], /--level must be one of MUST, SHOULD, MAY, not "MAXIMUM"/],
    [["--request-timeout", "soon"], /--request-timeout must be a duration/],
    [["--report", "pdf=a.pdf"], /--report must look like junit=FILE, json=FILE or markdown=FILE, not "pdf=a\.pdf"/],
    [["--report", "constructor=a"], /--report must look like/],
    [["--report", "json="], /--report must look like/],
    [["--report", "json=/no/such/folder/a.json"], /cannot be written to .*: \/no\/such\/folder does not exist/],
    [["--report", `json=${folder}`], /cannot be written to .*: it is a folder/],
    [["--report", "json=a", "--junit", "./a"], /Two reports cannot be written to a/],
    [["--other-caller", "nonsense"], /--other-caller must look like name:value/],
    [["--transport", "PIGEON"], /--transport must be one of JSONRPC, HTTP\+JSON, GRPC/],
    [["--a2a-version", "0.1"], /--a2a-version must be one of 1\.0, 0\.3, not "0\.1"/],
  ])("refuses %j", async (words, message) => {
    const { code, stderr } = await conformance("-a", server.url, ...words);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  it("says when there is no agent, and when time is over", async () => {
    expect((await conformance("-a", "http://127.0.0.1:1")).code).toBe(3);
    const cut = await conformance("-a", server.url, "--timeout", "150ms", "--transport", "GRPC");
    expect(cut.code).toBe(5);
  });
});
