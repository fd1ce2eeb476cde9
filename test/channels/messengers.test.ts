/** Two bots work together, each through the library of its network, on platforms that enforce the vendors' rules. */

import { expect, it } from "vitest";
import type { Channel, Post } from "../../src/core/wire/channel.ts";
import { discord } from "../../src/features/chat/networks/discord.ts";
import { slack } from "../../src/features/chat/networks/slack.ts";
import { SUITE_TOOLS } from "../../src/features/chat/networks/suite/channel-suite.ts";
import { telegram } from "../../src/features/chat/networks/telegram.ts";
import { startDiscord } from "../../src/features/chat/networks/testing/discord-server.ts";
import { startSlack } from "../../src/features/chat/networks/testing/slack-server.ts";
import { startTelegram } from "../../src/features/chat/networks/testing/telegram-server.ts";
import type { ChannelEntryOptions } from "../../src/features/chat/server/entries.ts";
import { closeLater } from "../support/lifecycle.ts";
import { followScript, reporter } from "./script.ts";
import { startInRoom } from "./stage.ts";

const NEW = { cursors: new Map<string, string>(), signal: new AbortController().signal };

/** The peer is there before the agent, so that it sees all that the agent posts. */
async function work(peer: Channel, room: string, entry: Omit<ChannelEntryOptions, "agent">, agent: Channel["self"]) {
  closeLater(async () => {
    peer.close();
    await peer.closed;
  });
  const entries = [{ ...entry, agent: "reporter", allowPeers: [peer.self.id], allowBots: true } as const];
  await startInRoom({ agents: { reporter }, channels: entries });
  return await followScript({ peer, room, agent, files: true });
}

/** What was answered, in order, without what depends on the pace of the network. */
function answersIn(posts: readonly Post[]): readonly string[] {
  return posts.flatMap(({ text }) => {
    const [, type = "", rest = ""] = /\[A2A:(\w+)([^\]]*)\]/.exec(text) ?? [];
    const [, state = ""] = /state=([\w-]+)/.exec(rest) ?? [];
    return ["", "accepted", "working"].includes(state) && type !== "card" ? [] : [`${type} ${state}`.trim()];
  });
}

const COURSE = ["card", "status input-required", "result completed", "result cancelled"];
const PROGRESS = /\[A2A:status task=t1 state=(?:accepted|working)/;

it("agents work together on Discord", async () => {
  const bot = (name: string, id: string) => ({ id, username: name, token: `${name}.token`, messageContent: true });
  const [agent, person] = [bot("reporter", "1200000000000000001"), bot("editor", "1200000000000000002")];
  const server = await startDiscord([agent, person]);
  closeLater(server.close);
  const { api, messages, room } = server;
  const peer = await discord.open({ token: person.token, api }, NEW, SUITE_TOOLS);
  const self = { id: agent.id, name: "reporter" };
  const posts = await work(peer, room, { discord: { token: agent.token, api } }, self);
  expect(answersIn(posts)).toEqual(COURSE);
  const sent = messages.filter(({ author }) => author.id === agent.id);
  const asked = messages.filter(({ author }) => author.id === person.id).map(({ id }) => id);
  // Every answer is a reply to what it answers; a task has one status, which is edited, beside its question.
  for (const { message_reference } of sent) expect(asked).toContain(message_reference?.message_id);
  expect(sent.filter(({ content }) => PROGRESS.test(content))).toHaveLength(1);
  const results = sent.filter(({ content }) => content.includes("[A2A:result task=t1"));
  expect(results).toMatchObject([{ attachments: [{ filename: "report.csv" }] }]);
});

it("agents work together on Telegram, where bots see what is addressed to them", async () => {
  const bot = (name: string, id: number) => ({
    id,
    username: name,
    token: `${id}:${name}`,
    privacy: true,
    botToBot: true,
  });
  const [agent, person] = [bot("reporter_bot", 7001), bot("editor_bot", 7002)];
  const server = await startTelegram([agent, person]);
  closeLater(server.close);
  const { apiRoot, messages, room } = server;
  const peer = await telegram.open({ token: person.token, apiRoot }, NEW, SUITE_TOOLS);
  const self = { id: String(agent.id), name: agent.username };
  const posts = await work(peer, room, { telegram: { token: agent.token, apiRoot } }, self);
  expect(answersIn(posts)).toEqual(COURSE);
  const sent = messages.filter(({ from }) => from.id === agent.id);
  for (const { caption, reply_to_message, text = caption } of sent) {
    expect(text).toMatch(/^\/a2a@editor_bot \[A2A:/);
    expect(reply_to_message?.from.id).toBe(person.id);
  }
  expect(sent.filter(({ text = "" }) => PROGRESS.test(text))).toHaveLength(1);
  const files = sent.filter(({ document }) => document !== undefined);
  expect(files).toMatchObject([
    { caption: expect.stringContaining("[A2A:result task=t1"), document: { file_name: "report.csv" } },
  ]);
});

it("agents work together on Slack, at its pace", async () => {
  const scopes = ["chat:write", "channels:history", "users:read", "files:read", "files:write"];
  const app = (name: string, id: string) => {
    const tokens = { botToken: `xoxb-${name}`, appToken: `xapp-${name}` };
    return { userId: `U${id}`, botId: `B${id}`, name, ...tokens, scopes };
  };
  const [agent, person] = [app("reporter", "01"), app("editor", "02")];
  const server = await startSlack([agent, person]);
  closeLater(server.close);
  const { apiUrl, messages, room } = server;
  const peer = await slack.open({ appToken: person.appToken, botToken: person.botToken, apiUrl }, NEW, SUITE_TOOLS);
  const settings = { appToken: agent.appToken, botToken: agent.botToken, apiUrl };
  const posts = await work(peer, room, { slack: settings }, { id: agent.userId, name: agent.name });
  expect(answersIn(posts)).toEqual(COURSE);
  const sent = messages.filter(({ user }) => user === agent.userId);
  expect(sent.filter(({ text }) => PROGRESS.test(text))).toHaveLength(1);
  const files = sent.filter(({ files = [] }) => files.length > 0);
  expect(files).toMatchObject([
    { text: expect.stringContaining("[A2A:result task=t1"), files: [{ name: "report.csv" }] },
  ]);
});
