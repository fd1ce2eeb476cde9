import { describe, expect, it } from "vitest";
import { type ChannelEntryOptions, networkOf, toOpenable } from "./entries.ts";

type Settings = Omit<ChannelEntryOptions, "agent">;

const routeOf = (settings: Settings) => toOpenable([{ ...settings, agent: "helper" }])[0]?.route;

const irc = { host: "irc.example.com", nick: "helper", channels: ["#work"] };
const xmpp = { service: "xmpps://example.com:5223", jid: "helper@example.com", rooms: ["work@rooms.example.com"] };
const mqtt = { name: "helper", rooms: ["work"] };
const app = { appToken: "xapp-1-A01-7-secret-one", botToken: "xoxb-secret-one" };

describe("the name of a channel's carrier", () => {
  it.each<[string, Settings, string]>([
    ["irc", { irc: { ...irc, password: "secret-one" } }, "helper@irc.example.com:6697"],
    ["xmpp", { xmpp: { ...xmpp, password: "secret-one" } }, "helper@example.com"],
    ["mqtt", { mqtt: { ...mqtt, url: "mqtts://user:secret-one@mqtt.example.com" } }, "helper@mqtt.example.com"],
    ["telegram", { telegram: { token: "12345:secret-one" } }, "12345"],
    ["discord", { discord: { token: "MTIz.abc.secret-one" } }, "MTIz"],
    ["slack", { slack: app }, "xapp-1-A01"],
  ])("has the account of %s, whatever its secret is", (network, settings, account) => {
    expect(routeOf(settings)).toBe(`a2a-lite:${network}:helper:${account}`);
  });

  it("has nothing of a token that names no account, and is another one for another token", () => {
    const one = {
      matrix: { homeserver: "https://matrix.example.org", token: "secret-one", rooms: ["#work:example.org"] },
    };
    const other = { matrix: { ...one.matrix, token: "secret-two" } };
    for (const settings of [one, other, { telegram: { token: "secret-one" } }]) {
      const { network, settings: parsed } = networkOf({ ...settings, agent: "helper" });
      for (const secret of network.secrets(parsed)) expect(routeOf(settings)).not.toContain(secret);
    }
    expect(routeOf(one)).not.toBe(routeOf(other));
  });
});
