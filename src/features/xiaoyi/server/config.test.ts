import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../core/server/config/load.ts";
import { ConfigError } from "../../../core/yaml/problems.ts";
import { xiaoyiOf } from "./config.ts";

function parse(xiaoyi: string) {
  const text = `agents: { echo: { use: echo } }\nxiaoyi: { ${xiaoyi} }`;
  return xiaoyiOf(parseConfig(text, { source: "dragoman.yaml", folder: "/srv", environment: {}, overrides: {} }));
}

function problemsOf(xiaoyi: string): readonly string[] {
  try {
    parse(xiaoyi);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

const HTTP = "agent: echo, ak: a, sk: s";
const LINK = "agent: echo, agentId: i, ak: a, sk: s";

describe("notifications", () => {
  it("go to the platform, as far apart as it shows them", () => {
    const push = {
      apiId: "x",
      url: "https://hag.cloud.huawei.com/open-ability-agent/v1/agent-webhook",
      spacingMs: 15_000,
    };
    const { http, links } = parse(`http: [{ ${HTTP}, push: { apiId: x } }], links: [{ ${LINK}, push: { apiId: x } }]`);
    expect(http[0]?.push).toEqual(push);
    expect(links[0]?.push).toEqual(push);
  });

  it("may have keys of their own, another address on this machine, and the devices to notify", () => {
    const words = "apiId: x, ak: b, sk: t, url: 'http://[::1]:80/x', devices: all, spacing: 0s";
    const { http } = parse(`http: [{ agent: echo, apiKey: k, push: { ${words} } }]`);
    expect(http[0]?.push).toEqual({
      apiId: "x",
      ak: "b",
      sk: "t",
      url: "http://[::1]:80/x",
      devices: "all",
      spacingMs: 0,
    });
  });

  it.each([
    [`http: [{ ${HTTP}, push: {} }]`, "push.apiId"],
    [`http: [{ ${HTTP}, push: { apiId: x, url: 'http://push.example' } }]`, "push.url: must be an https address"],
    [`http: [{ ${HTTP}, push: { apiId: x, url: 'file:///x' } }]`, "push.url: must be an https address"],
    [`http: [{ ${HTTP}, push: { apiId: x, devices: some } }]`, "push.devices"],
    [`http: [{ ${HTTP}, push: { apiId: x, ak: b } }]`, "push: needs both of ak and sk, or neither"],
    ["http: [{ agent: echo, apiKey: k, push: { apiId: x } }]", "xiaoyi.http[0].push: needs ak and sk"],
    [`links: [{ ${LINK}, push: { apiId: x, sk: t } }]`, "xiaoyi.links[0].push: needs both of ak and sk, or neither"],
  ])("refuses %s", (xiaoyi, message) => {
    expect(problemsOf(xiaoyi)).toEqual([expect.stringContaining(message)]);
  });
});

describe("the language of the server's own texts", () => {
  it("is Chinese by default, and chosen for each entry", () => {
    const words = `http: [{ ${HTTP} }, { ${HTTP}, language: en }], links: [{ ${LINK}, language: en }]`;
    const { http, links } = parse(words);
    expect([...http, ...links].map(({ language }) => language)).toEqual(["zh", "en", "en"]);
    expect(problemsOf(`http: [{ ${HTTP}, language: fr }]`)).toEqual([expect.stringContaining("language")]);
  });
});

describe("files", () => {
  it("have limits, and hosts that may be inside", () => {
    expect(parse("").files).toEqual({
      maxBytes: 30 * 1_048_576,
      timeoutMs: 60_000,
      allowHosts: [],
      quotaBytes: 1_024 * 1_048_576,
      keepMs: 604_800_000,
    });
    expect(
      parse("files: { maxBytes: 1MiB, timeout: 5s, allowHosts: [127.0.0.1, 10.0.0.0/8], keep: 1h }").files,
    ).toEqual(
      expect.objectContaining({ maxBytes: 1_048_576, timeoutMs: 5_000, allowHosts: ["127.0.0.1", "10.0.0.0/8"] }),
    );
  });

  it.each([
    ["files: { maxBytes: lots }", "must be a size"],
    ["files: { allowHosts: ['http://x/'] }", "must be a host, an address or a range of addresses"],
    ["files: { timeout: 30d }", "must be shorter than 25 days"],
    [`http: [{ ${HTTP}, upload: { uid: u } }]`, "upload.apiKey"],
    [`http: [{ ${HTTP}, upload: { uid: u, apiKey: k, url: 'http://x.example' } }]`, "upload.url: must be an https"],
  ])("refuses %s", (xiaoyi, message) => {
    expect(problemsOf(xiaoyi)).toEqual([expect.stringContaining(message)]);
  });
});
