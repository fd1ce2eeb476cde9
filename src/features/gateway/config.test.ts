import { describe, expect, it } from "vitest";
import { runToEnd } from "../../core/agents/testing/turns.ts";
import { buildAgents } from "../../core/server/config/build-agents.ts";
import { effectiveConfig } from "../../core/server/config/describe.ts";
import { parseConfig } from "../../core/server/config/load.ts";
import { collectConfigSecrets } from "../../core/server/config/secrets.ts";
import { ConfigError } from "../../core/yaml/problems.ts";

const PLACE = { source: "dragoman.yaml", folder: "/srv", environment: {} };
const parse = (keys: string) => parseConfig(`agents: { a: { ${keys} } }`, PLACE);

function problemsOf(keys: string): readonly string[] {
  try {
    parse(keys);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

const REMOTE = "remote: https://partner.example.com";

describe("a remote agent", () => {
  it("has the keys that it is given", () => {
    const more = "dialect: a2a-v03, binding: GRPC, origins: [https://api.example.com], timeout: 30s";
    expect(parse(`${REMOTE}, ${more}, credentials: { bearer: s3cret }`).agents.get("a")).toEqual({
      kind: "remote",
      source: {
        kind: "url",
        url: "https://partner.example.com",
        dialect: "a2a-v03",
        binding: "GRPC",
        origins: ["https://api.example.com"],
        credentials: { bearer: "s3cret" },
      },
      overrides: { timeoutMs: 30_000 },
    });
  });

  it.each([
    ["remote: ftp://x", "agents.a.remote: must be an http or https address without login"],
    ["remote: https://me:pw@x.example", "agents.a.remote: must be an http or https address without login"],
    [
      `${REMOTE}, dialect: task-rest`,
      'agents.a.dialect: must be one of a2a-v1, a2a-v03, a2a-v01, tasks-rest, xiaoyi-http; did you mean "tasks-rest"?',
    ],
    [`${REMOTE}, origins: ["https://x.example/path"]`, "agents.a.origins[0]: must be an origin such as"],
    [`${REMOTE}, credentials: {}`, "agents.a.credentials: needs one of bearer, apiKey, basic, oauth, ak"],
    [`${REMOTE}, credentials: { baerer: x }`, 'agents.a.credentials.baerer: unknown key; did you mean "bearer"?'],
    [`${REMOTE}, credentials: { bearer: x, apiKey: y }`, "has bearer and apiKey; only one of them can be used"],
    [
      `${REMOTE}, credentials: { bearer: x, header: K }`,
      "agents.a.credentials.header: has a meaning only beside apiKey",
    ],
    [`${REMOTE}, credentials: { ak: x }`, "agents.a.credentials: needs both ak and sk"],
    [
      `${REMOTE}, credentials: { oauth: { clientId: i, clientSecret: s } }`,
      "agents.a.credentials.oauth: needs either tokenUrl or issuer",
    ],
    ["use: echo, credentials: { bearer: x }", "agents.a.credentials: has a meaning only beside remote"],
    ["remote: partner.example.com", "skill:<id>, or the name of an agent in the registry"],
    ["remote: 'skill:'", "skill:<id>, or the name of an agent in the registry"],
    ["remote: 'skill:write', credentials: { bearer: x }", "agents.a.credentials: has a meaning only beside a URL"],
    ["remote: writer, dialect: a2a-v1", "agents.a.dialect: has a meaning only beside a URL"],
    [`${REMOTE}, use: echo`, "agents.a: has use and remote; an agent is only one of them"],
  ])("is refused with {%s}", (keys, message) => {
    expect(problemsOf(keys).join("\n")).toContain(message);
    expect(problemsOf(keys)[0]).toMatch(/^dragoman\.yaml:1:\d+: /);
  });

  it.each([
    ["skill:write", { skill: "write" }],
    ["Outline writer", { registered: "Outline writer" }],
    ["urn:air:example.com:agents:outline", { registered: "urn:air:example.com:agents:outline" }],
  ])("may be looked up in the registry as %s", async (remote, wanted) => {
    const config = parse(`remote: '${remote}', name: Pen, timeout: 30s`);
    expect(config.agents.get("a")).toEqual({
      kind: "remote",
      source: { kind: "found", wanted },
      overrides: { name: "Pen", timeoutMs: 30_000 },
    });
    expect(effectiveConfig(config)["agents.a.remote"]?.value).toBe(remote);
    const agent = (await buildAgents(config)).get("a");
    expect(agent).toMatchObject({ profile: { name: "Pen" }, timeoutMs: 30_000, onCrash: "resume" });
  });

  const parseInRoom = (keys: string, channels = "[{ irc: { host: h, nick: n, channels: ['#agents'] }, agent: a }]") =>
    parseConfig(`agents: { a: { ${keys} } }\nchannels: ${channels}`, PLACE);

  it("may be a participant of a chat room", async () => {
    const config = parseInRoom("remote: a2a-lite:irc/#agents#helper, name: Pen, timeout: 30s");
    expect(config.agents.get("a")).toEqual({
      kind: "remote",
      source: { kind: "address", address: "a2a-lite:irc/#agents#helper" },
      overrides: { name: "Pen", timeoutMs: 30_000 },
    });
    expect(effectiveConfig(config)["agents.a.remote"]?.value).toBe("a2a-lite:irc/#agents#helper");
    const agent = (await buildAgents(config)).get("a");
    expect(agent).toMatchObject({
      profile: {
        name: "Pen",
        extensions: [
          { uri: "urn:dragoman:ext:upstream:v1", params: { url: "a2a-lite:irc/#agents#helper" } },
          { uri: "urn:dragoman:ext:unverified:v1" },
        ],
      },
      timeoutMs: 30_000,
      onCrash: "resume",
    });
  });

  it.each([
    ["remote: a2a-lite:irc/#other#helper", undefined, "no entry of channels with irc is in the room #other"],
    ["remote: a2a-lite:irc/#agents#helper", "[]", "needs an entry of channels with irc, over which it is called"],
    ["remote: a2a-lite:mqtt/a#helper", undefined, "needs an entry of channels with mqtt, over which it is called"],
    ["remote: a2a-lite:fax/a#helper", undefined, 'there is no network "fax"; the networks are irc, '],
    ["remote: a2a-lite:irc/#agents", undefined, "a2a-lite:<network>/<room>#<peer>, skill:<id>, or the name"],
    ["remote: a2a-lite:irc/#agents#helper, dialect: a2a-v1", undefined, "has a meaning only beside a URL"],
  ])("is refused in a chat room with {%s} and channels %s", (keys, channels, message) => {
    expect(() => parseInRoom(keys, channels)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^dragoman\.yaml:1:\d+: agents\.a\./) }),
    );
    expect(() => parseInRoom(keys, channels)).toThrow(message);
  });

  it.each([
    "{ bearer: s3cret-value }",
    "{ apiKey: s3cret-value, header: X-Key }",
    "{ basic: { user: me, password: s3cret-value } }",
    "{ oauth: { issuer: https://id.example.com, clientId: i, clientSecret: s3cret-value } }",
    "{ ak: id, sk: s3cret-value }",
  ])("keeps the secret of %s", (credentials) => {
    const config = parse(`${REMOTE}, credentials: ${credentials}`);
    expect(collectConfigSecrets(config)).toContain("s3cret-value");
    expect(JSON.stringify(effectiveConfig(config))).not.toContain("s3cret-value");
    expect(effectiveConfig(config)["agents.a.remote"]?.value).toBe("https://partner.example.com");
  });

  it("is described by the configuration until its card is read, and fails with its address if it is down", async () => {
    const config = parseConfig("agents: { far: { remote: http://127.0.0.1:9, description: Far away. } }", PLACE);
    const far = (await buildAgents(config)).get("far")!;
    expect(far.profile).toMatchObject({
      name: "far",
      description: "Far away.",
      inputModes: ["*/*"],
      extensions: [{ uri: "urn:dragoman:ext:upstream:v1", params: { url: "http://127.0.0.1:9" } }],
    });
    const { events } = await runToEnd(far, { text: "hello" });
    expect(events).toMatchObject([
      {
        status: "TASK_STATE_FAILED",
        message: {
          parts: [{ text: expect.stringContaining("Upstream http://127.0.0.1:9 of agent far: Connection refused") }],
        },
      },
    ]);
  });
});
