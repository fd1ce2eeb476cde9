import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatValue, resolveSetting, SETTING_NAMES, variableName } from "./definitions.ts";
import { findSettingFiles } from "./files.ts";
import { readSettings } from "./read.ts";

describe("settings", () => {
  it("[A2ACLI_AUTH_002] have a variable named after their flag", () => {
    expect(SETTING_NAMES.map(variableName)).toEqual([
      "A2ACLI_AGENT_CARD",
      "A2ACLI_REGISTRY",
      "A2ACLI_OUTPUT",
      "A2ACLI_TRANSPORT",
      "A2ACLI_A2A_VERSION",
      "A2ACLI_DIALECT",
      "A2ACLI_BEARER",
      "A2ACLI_API_KEY",
      "A2ACLI_ACCESS_KEY",
      "A2ACLI_SECRET_KEY",
      "A2ACLI_AUTH_CODE",
      "A2ACLI_SVC_PARAM",
      "A2ACLI_CREDENTIAL_ORIGIN",
      "A2ACLI_CLIENT_CERT",
      "A2ACLI_CLIENT_KEY",
      "A2ACLI_CA_CERT",
      "A2ACLI_SIGNATURES",
      "A2ACLI_CARD_KEY",
      "A2ACLI_JKU_ORIGIN",
      "A2ACLI_INSECURE",
      "A2ACLI_TIMEOUT",
      "A2ACLI_POLL_INTERVAL",
      "A2ACLI_VERBOSE",
      "A2ACLI_DEBUG",
      "A2ACLI_ASYNC",
      "A2ACLI_WAIT",
      "A2ACLI_CONTEXT_ID",
      "A2ACLI_TASK_ID",
      "A2ACLI_METADATA",
    ]);
  });

  it("[A2ACLI_CONFIG_002] take the flag before the environment before the files in order", () => {
    const near = { path: "near", values: { A2ACLI_AGENT_CARD: "near", A2ACLI_TIMEOUT: "1s" }, exposed: false };
    const far = { path: "far", values: { A2ACLI_AGENT_CARD: "far", A2ACLI_CONTEXT_ID: "c" }, exposed: false };
    const files = [near, far];
    const environment = { A2ACLI_AGENT_CARD: "environment" };
    expect(resolveSetting("agentCard", { agentCard: "flag" }, environment, files)).toMatchObject({ value: "flag" });
    expect(resolveSetting("agentCard", {}, environment, files)).toEqual({
      value: "environment",
      source: "environment A2ACLI_AGENT_CARD",
    });
    expect(resolveSetting("agentCard", {}, {}, files)).toEqual({
      value: "near",
      source: "file near",
    });
    expect(resolveSetting("contextId", {}, {}, files)).toEqual({ value: "c", source: "file far" });
    expect(resolveSetting("taskId", {}, {}, files)).toBeUndefined();
  });

  it("[A2ACLI_DEFAULT_001] have the defaults of the specification", () => {
    expect(readSettings({}, {}, [])).toMatchObject({
      output: "text",
      transport: [],
      a2aVersion: undefined,
      dialect: undefined,
      insecure: false,
      timeoutMs: undefined,
      pollIntervalMs: 2000,
      verbose: false,
      async: false,
      stream: false,
    });
  });

  it("[A2ACLI_DEFAULT_001] let --wait and --no-wait override what the environment says of waiting", () => {
    const environment = { A2ACLI_ASYNC: "true" };
    expect(readSettings({}, environment, []).async).toBe(true);
    expect(readSettings({ wait: true }, environment, []).async).toBe(false);
    expect(readSettings({ wait: false }, {}, []).async).toBe(true);
    expect(() => readSettings({ wait: true, async: true }, {}, [])).toThrow("mutually exclusive");
  });

  it("[A2ACLI_OUT_002] never take --stream from anywhere but the flag", () => {
    expect(readSettings({}, { A2ACLI_STREAM: "true" }, []).stream).toBe(false);
    expect(readSettings({ stream: true }, {}, []).stream).toBe(true);
  });

  it("read lists, parameters and metadata", () => {
    const settings = readSettings(
      { svcParam: ["x-trace: a:b"], metadata: '{"k":[1]}' },
      { A2ACLI_TRANSPORT: "GRPC, JSONRPC" },
      [],
    );
    expect(settings.transport).toEqual(["GRPC", "JSONRPC"]);
    expect(settings.svcParam).toEqual([["x-trace", "a:b"]]);
    expect(settings.metadata).toEqual({ k: [1] });
  });

  it.each([
    [{ output: "yaml" }, "text, json"],
    [{ timeout: "soon" }, "duration"],
    [{ pollInterval: "0" }, "duration"],
    [{ a2aVersion: "one" }, "look like 1.0"],
    [{ metadata: "[1]" }, "JSON object"],
    [{ svcParam: ["nocolon"] }, "name:value"],
    [{ svcParam: ["x:a\nb"] }, "not one line"],
  ])("refuse %j", (flags, reason) => {
    expect(() => readSettings(flags, {}, [])).toThrow(reason);
  });

  it("say of secrets only that they are set", () => {
    expect(formatValue("bearer", "sesame")).toBe("(set)");
    expect(formatValue("svcParam", ["a:b", "c:d"])).toBe("(2 set)");
  });
});

describe("setting files", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "dragoman-settings-"));
    mkdirSync(join(root, "home/.config/a2a-cli"), { recursive: true });
    mkdirSync(join(root, "project/deep/down"), { recursive: true });
    writeFileSync(join(root, "home/.config/a2a-cli/.env"), "A2ACLI_TIMEOUT=9s\n");
    writeFileSync(
      join(root, "project/.env"),
      "# comment\nOTHER=1\nexport A2ACLI_AGENT_CARD='near'\nA2ACLI_BEARER=sesame\n",
    );
    writeFileSync(join(root, "project/deep/.env"), "OTHER=2\n");
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const find = (explicit?: string) => findSettingFiles(explicit, join(root, "project/deep/down"), join(root, "home"));

  it("[A2ACLI_CONFIG_002] are the nearest one with settings on the way up, then the global one", () => {
    expect(find().map(({ path, values }) => [path, { ...values }])).toEqual([
      [join(root, "project/.env"), { A2ACLI_AGENT_CARD: "near", A2ACLI_BEARER: "sesame" }],
      [join(root, "home/.config/a2a-cli/.env"), { A2ACLI_TIMEOUT: "9s" }],
    ]);
  });

  it("[A2ACLI_CONFIG_001] are distinguished by whether others can read a credential in them", () => {
    chmodSync(join(root, "project/.env"), 0o644);
    expect(find()[0]?.exposed).toBe(true);
    chmodSync(join(root, "project/.env"), 0o600);
    expect(find()[0]?.exposed).toBe(false);
  });

  it("can be named, and must then exist", () => {
    writeFileSync(join(root, "agent.env"), "A2ACLI_OUTPUT=json\n");
    expect(find(join(root, "agent.env"))[0]?.values).toEqual({ A2ACLI_OUTPUT: "json" });
    expect(() => find("missing.env")).toThrow("cannot read");
  });
});
