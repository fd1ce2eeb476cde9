import { describe, expect, it } from "vitest";
import { checkDuplicateLinks, dialHeaders, isLinkUrl, linkServersOf } from "./link-servers.ts";

const ENTRY = { agent: "echo", agentId: "i", ak: "key", sk: "xiaoyi-secret-key" };
const HUAWEI = "wss://hag.cloud.huawei.com/openclaw/v1/ws/link";
const BACKUP = "wss://192.0.2.1/openclaw/v1/ws/link";

describe("servers", () => {
  it("are Huawei's alone by default", () => {
    expect(linkServersOf(ENTRY)).toEqual([{ name: "main", url: HUAWEI, tls: {} }]);
  });

  it.each([
    [{}, { servername: "hag.cloud.huawei.com" }],
    [{ insecure: false }, { servername: "hag.cloud.huawei.com" }],
    [{ servername: "other.example.com" }, { servername: "other.example.com" }],
    [{ fingerprint: "ab" }, { fingerprint: "ab" }],
    [{ insecure: true }, { insecure: true }],
  ])("a backup with %o is judged by %o", (said, tls) => {
    expect(linkServersOf({ ...ENTRY, backup: { url: BACKUP, ...said } })[1]).toEqual({
      name: "backup",
      url: BACKUP,
      tls,
    });
  });

  it("a backup of a server that has no name is judged by its own", () => {
    const entry = { ...ENTRY, url: "ws://127.0.0.1:1/x", backup: { url: "ws://127.0.0.1:2/x" } };
    expect(linkServersOf(entry)[1]?.tls).toEqual({});
  });

  it.each([
    ["wss://example.com/x", true],
    ["ws://127.0.0.1/x", true],
    ["ws://[::1]:80/x", true],
    ["ws://localhost:80/x", true],
    ["ws://example.com/x", false],
    ["ws://127.0.0.1.evil.example.com/x", false],
    ["ws://1.2.3.4/x", false],
    ["https://example.com/x", false],
    ["nothing", false],
  ])("%s may be dialled: %s", (url, may) => {
    expect(isLinkUrl(url)).toBe(may);
    if (!may) expect(() => linkServersOf({ ...ENTRY, url })).toThrow(TypeError);
  });

  it("take one link of an agent", () => {
    expect(() => checkDuplicateLinks([ENTRY, { ...ENTRY, agentId: "j" }])).not.toThrow();
    expect(() => checkDuplicateLinks([ENTRY, { ...ENTRY, url: BACKUP }])).not.toThrow();
    expect(() => checkDuplicateLinks([ENTRY, { ...ENTRY, agent: "other" }])).toThrow("two links to one server");
    expect(() => checkDuplicateLinks([{ ...ENTRY, backup: { url: `${HUAWEI}/other` } }])).toThrow("the same server");
  });
});

it("headers sign the time, and only that", () => {
  expect(dialHeaders(ENTRY, 1_785_024_000_000)).toEqual({
    "x-access-key": "key",
    "x-sign": "rBiSv+0iYT8NxcMGavPxZTwQTwGf6XejK68CexsG2CI=",
    "x-ts": "1785024000000",
    "x-agent-id": "i",
  });
});
