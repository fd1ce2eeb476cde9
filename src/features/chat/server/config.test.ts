import { describe, expect, it } from "vitest";
import { effectiveConfig } from "../../../core/server/config/describe.ts";
import { parseConfig } from "../../../core/server/config/load.ts";
import { collectConfigSecrets } from "../../../core/server/config/secrets.ts";
import { ConfigError } from "../../../core/yaml/problems.ts";
import { NETWORKS } from "../networks/networks.ts";
import { channelsOf } from "./config.ts";

function parse(channels: string, environment: Record<string, string> = {}) {
  const text = `agents: { helper: { use: echo }, writer: { use: echo } }\nchannels:\n${channels}`;
  return parseConfig(text, { source: "dragoman.yaml", folder: "/srv", environment });
}

function problemsOf(channels: string): readonly string[] {
  try {
    parse(channels);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

const IRC = "irc: { host: irc.example.org, nick: helper, channels: ['#agents'] }";

describe("an entry of channels", () => {
  it("has a network and an agent; no one may give it work unless the entry says so", () => {
    expect(channelsOf(parse(`  - { ${IRC}, agent: helper }`))).toEqual([
      {
        irc: expect.objectContaining({ host: "irc.example.org", nick: "helper", channels: ["#agents"] }),
        agent: "helper",
        allowPeers: [],
        allowBots: false,
        rate: { messages: 10, perMs: 10_000 },
        timeoutMs: 600_000,
      },
    ]);
  });

  it("may say who may give work, how often, and how long peers may take", () => {
    const rules = "allowPeers: [ada, bob], allowBots: mentions, owner: chat, rate: { messages: 3 }, timeout: 5m";
    expect(channelsOf(parse(`  - { ${IRC}, agent: helper, ${rules} }`))).toMatchObject([
      {
        allowPeers: ["ada", "bob"],
        allowBots: "mentions",
        owner: "chat",
        rate: { messages: 3, perMs: 10_000 },
        timeoutMs: 300_000,
      },
    ]);
    expect(channelsOf(parse(`  - { ${IRC}, agent: helper, allowPeers: "*", allowBots: true }`))).toMatchObject([
      { allowPeers: "*", allowBots: true },
    ]);
  });

  it.each([
    [IRC, "channels[0].agent: is required"],
    [`${IRC}, agent: helpr`, 'channels[0].agent: there is no agent "helpr"; did you mean "helper"?'],
    ["agent: helper", `channels[0]: needs one of ${NETWORKS.map(({ name }) => name).join(", ")}`],
    ["agent: helper, ircc: {}", 'channels[0].ircc: unknown key; did you mean "irc"?'],
    [`${IRC}, agent: helper, allowPeer: []`, 'channels[0].allowPeer: unknown key; did you mean "allowPeers"?'],
    [`${IRC}, agent: helper, allowPeers: all`, 'channels[0].allowPeers: must be a list of ids, or "*" for everyone'],
    [`${IRC}, agent: helper, allowBots: some`, "channels[0].allowBots: must be one of false, mentions, true"],
    [`${IRC}, agent: helper, rate: { messages: 0 }`, "channels[0].rate.messages: must be 1 or more"],
    [`${IRC}, agent: helper, rate: { per: 0s }`, "channels[0].rate.per: must be longer than nothing"],
    [`${IRC}, agent: helper, timeout: soon`, "channels[0].timeout: must be a duration"],
    [
      "irc: { host: h, nick: n, channel: [a] }, agent: helper",
      'channels[0].irc.channel: unknown key; did you mean "channels"?',
    ],
    ["irc: { nick: n, channels: [a] }, agent: helper", "channels[0].irc.host: is required"],
  ])("is refused as {%s}", (entry, message) => {
    expect(problemsOf(`  - { ${entry} }`)).toContainEqual(expect.stringContaining(message));
  });

  it("has addresses of XMPP as servers write them", () => {
    const settings =
      "service: 'xmpp://localhost', jid: Helper@Example.org, password: p, rooms: [Team@Rooms.example.org]";
    expect(channelsOf(parse(`  - { xmpp: { ${settings} }, agent: helper }`))).toMatchObject([
      { xmpp: { jid: "helper@example.org", rooms: ["team@rooms.example.org"] } },
    ]);
    const xmpp = NETWORKS.find(({ name }) => name === "xmpp");
    expect(xmpp?.toId?.("Team@Rooms.example.org/Ada")).toBe("team@rooms.example.org/Ada");
  });

  it("names the place of a problem", () => {
    expect(problemsOf(`  - ${IRC}\n    agent: helper\n    alowBots: true\n`)).toEqual([
      'dragoman.yaml:5:5: channels[0].alowBots: unknown key; did you mean "allowBots"?',
    ]);
  });

  it("has one network", () => {
    const both = `${IRC}, mqtt: { url: "mqtt://localhost", name: helper, rooms: [agents] }`;
    expect(problemsOf(`  - { ${both}, agent: helper }`)).toEqual([
      expect.stringContaining("channels[0]: has irc and mqtt; an entry is one of them"),
    ]);
  });

  it("has an account of its own, whatever its rooms are", () => {
    const other = "irc: { host: irc.example.org, nick: helper, channels: ['#others'] }";
    expect(problemsOf(`  - { ${IRC}, agent: helper }\n  - { ${other}, agent: writer }`)).toEqual([
      "dragoman.yaml:4:12: channels[1].irc: is the same account as channels[0]",
    ]);
    const writer = IRC.replace("nick: helper", "nick: writer");
    expect(problemsOf(`  - { ${IRC}, agent: helper }\n  - { ${writer}, agent: writer }`)).toEqual([]);
  });
});

describe("secrets of channels", () => {
  const entry = "telegram: { token: '${TG}' }, agent: helper";

  it("are not shown", () => {
    const config = parse(`  - { ${entry} }`, { TG: "123456:sesame" });
    const shown = effectiveConfig(config);
    expect(shown["channels[0].telegram.token"]?.value).toBe("***");
    expect(JSON.stringify(shown)).not.toContain("sesame");
    expect(collectConfigSecrets(config)).toContain("123456:sesame");
  });

  it("are not shown within lists either, and all else is", () => {
    const channels = "channels: ['#agents', { name: '#ops', key: sesame }]";
    const shown = effectiveConfig(
      parse(`  - { irc: { host: irc.example.org, nick: helper, ${channels} }, agent: helper, allowPeers: [ada] }`),
    );
    expect(shown).toMatchObject({
      "channels[0].irc.host": { value: "irc.example.org" },
      "channels[0].irc.channels[0]": { value: "#agents" },
      "channels[0].irc.channels[1].name": { value: "#ops" },
      "channels[0].irc.channels[1].key": { value: "***" },
      "channels[0].agent": { value: "helper" },
      "channels[0].allowPeers": { value: ["ada"] },
      "channels[0].allowBots": { value: false, origin: "default" },
      "channels[0].rate.messages": { value: 10, origin: "default" },
      "channels[0].rate.per": { value: "10s", origin: "default" },
      "channels[0].timeout": { value: "10m", origin: "default" },
    });
  });
});
