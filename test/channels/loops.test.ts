/** Two bots that answer each other, each allowed to: they stop by themselves, after as many posts as the names say. */

import { describe, expect, it } from "vitest";
import { startDiscord } from "../../src/features/chat/networks/testing/discord-server.ts";
import type { ChannelEntryOptions } from "../../src/features/chat/server/entries.ts";
import { defineAgent } from "../../src/index.ts";
import { closeLater } from "../support/lifecycle.ts";
import { RAW_NETWORKS, type RawNetwork } from "./raw-peers.ts";
import { startInRoom } from "./stage.ts";

type Bot = "agent" | "helper";

interface Stage {
  settings(name: Bot): Omit<ChannelEntryOptions, "agent">;
  /** How a post addresses this bot. */
  addressed(name: Bot): string;
  /** By whatever makes the agent address the helper. */
  begin(): Promise<unknown> | unknown;
  /** A person writes. */
  say(text: string): Promise<unknown> | unknown;
  /** Posts of the bots so far. */
  posts(): readonly { readonly from: string; readonly text: string }[];
}

/** Whatever one of them is told it tells the other, unless it is asked to be quiet. */
async function chat(
  stage: Stage,
  rate: { readonly messages: number; readonly perMs: number },
  least: number,
  most = least,
) {
  for (const [name, other] of [
    ["agent", "helper"],
    ["helper", "agent"],
  ] as const) {
    const chatter = defineAgent({
      name: `Chatter ${name}`,
      description: "Answers.",
      run: (turn) => turn.reply(turn.text.includes("quietly") ? "Noted." : `${stage.addressed(other)} I see.`),
    });
    const entry = { ...stage.settings(name), agent: "chatter", allowPeers: "*", allowBots: true, rate } as const;
    await startInRoom({ agents: { chatter }, channels: [entry] });
  }
  await stage.begin();
  await expect.poll(() => stage.posts().length, { interval: 10 }).toBeGreaterThanOrEqual(least);
  // Two that had not stopped would have posted more by the time that each has answered someone else three times.
  for (let round = 1; round <= 3; round++) {
    for (const name of ["agent", "helper"] as const) {
      await stage.say(`${stage.addressed(name)} quietly`);
      const noted = () => stage.posts().filter(({ from, text }) => from === name && text.includes("Noted."));
      await expect.poll(noted, { interval: 10 }).toHaveLength(round);
    }
  }
  const count = stage.posts().length - 6;
  expect([count >= least, count <= most]).toEqual([true, true]);
}

async function startRaw(network: RawNetwork): Promise<Stage> {
  const room = await network.start();
  const person = await room.join("person");
  return {
    settings: (name) => room.settings(name),
    addressed: (name) => `@${name}`,
    begin: () => person.say("@agent Hello!"),
    say: (text) => person.say(text),
    posts: () => person.posts,
  };
}

async function startOnDiscord(): Promise<Stage> {
  const ids = { agent: "1200000000000000001", helper: "1200000000000000002" };
  const bot = (name: Bot) => ({ id: ids[name], username: name, token: `${name}.token`, messageContent: true });
  const server = await startDiscord([bot("agent"), bot("helper")]);
  closeLater(server.close);
  const write = (author: Parameters<typeof server.say>[0], content: string) =>
    server.say(author, server.room, { content });
  return {
    settings: (name) => ({ discord: { token: bot(name).token, api: server.api } }),
    addressed: (name) => `<@${ids[name]}>`,
    // What an agent writes notifies no one but whom it answers, so the helper has to be the first.
    begin: () => write({ id: ids.helper, username: "helper", bot: true }, `<@${ids.agent}> Hello!`),
    say: (text) => write({ id: "1200000000000000003", username: "person" }, text),
    posts: () =>
      server.messages
        .filter(({ author }) => author.bot === true)
        .map(({ author, content }) => ({ from: author.username, text: content })),
  };
}

describe("two bots that answer everything stop by themselves", () => {
  const HOUR_MS = 60 * 60_000;
  const find = (name: string) => RAW_NETWORKS.filter((network) => network.isAvailable && network.name === name);

  // Served posts of both, the answer to the person, and a notice of each that it is too much. IRC is slow.
  it.each(find("irc"))("on IRC after 13 posts, where 5 of each are served", async (network) => {
    await chat(await startRaw(network), { messages: 5, perMs: HOUR_MS }, 13);
  });

  // The first notice replies to a post at once: it is answered only if the id of that post is stored by then.
  it.each(find("xmpp"))(
    "on XMPP after 20 to 22 posts, whatever the rate is, since they answer so quickly",
    async (network) => {
      await chat(await startRaw(network), { messages: 1_000, perMs: 1_000 }, 20, 22);
    },
  );

  it.each(find("mqtt"))(
    "on MQTT after 20 to 22 posts, whatever the rate is, since they answer so quickly",
    async (network) => {
      await chat(await startRaw(network), { messages: 1_000, perMs: 1_000 }, 20, 22);
    },
  );

  it("on Discord after 17 posts and a notice of each, since it marks bots: 8 of each are served whatever the rate is", async () => {
    await chat(await startOnDiscord(), { messages: 1_000, perMs: 1_000 }, 18, 19);
  });
});
