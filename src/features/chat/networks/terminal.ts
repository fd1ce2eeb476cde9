/** A chat room in the console of the process: agents and the person in front of it. */

import { createInterface, type Interface } from "node:readline";
import { z } from "zod";
import { safeText } from "../../../core/model/safe-text.ts";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type Post,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { findMentions, mentionsName } from "./mentions.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue, type PostQueue } from "./post-queue.ts";

const ROOM = "terminal";
/** The person who types. */
const YOU = "you";

const ABILITIES: ChannelAbilities = {
  text: { max: 10_000, unit: "characters" },
  lines: true,
  maxFileBytes: 0,
  edits: false,
  replies: false,
  seesBots: "all",
  rate: { posts: 100, perMs: 1_000 },
  history: false,
};

const settings = z.strictObject({
  name: z
    .string()
    .regex(/^[^\s@:,\p{Cc}]+$/u, { error: "must not have spaces, `@`, `:` or `,`" })
    .refine((name) => name !== YOU, { error: "is the name of the person who types" })
    .describe("Name of the agent in the console. Unique."),
});

type TerminalSettings = z.infer<typeof settings>;

interface Streams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** All channels of one network share its streams: there is one console, with one room. */
export function createTerminal(streams: () => Streams): Network<TerminalSettings> {
  const agents = new Map<string, { readonly queue: PostQueue; readonly tools: ChannelTools }>();
  let lines: Interface | undefined;

  function deliver(sender: string, bot: boolean, text: string): void {
    for (const [name, { queue, tools }] of agents) {
      if (name !== sender) queue.push(toPost(name, agents.size === 1, sender, bot, text, tools));
    }
  }
  function listen(): void {
    lines ??= createInterface({ input: streams().input }).on("line", (line) => {
      if (line.trim() !== "") deliver(YOU, false, line);
    });
  }
  function stopListening(): void {
    if (agents.size > 0) return;
    lines?.close();
    lines = undefined;
  }

  return {
    name: "terminal",
    title: "Terminal",
    packages: [],
    settings,
    account: ({ name }) => name,
    secrets: () => [],
    rooms: () => [ROOM],
    setup: [
      `Lines that you type are posts of \`${YOU}\`: put it into \`allowPeers\`.`,
      "One agent gets all lines. With several, write `@name` or `name:` to address one of them.",
      "Agents see each other's posts: with `allowBots: true` they can work together.",
    ],
    abilities: ABILITIES,
    async open({ name }, { signal }, tools) {
      await Promise.resolve();
      if (signal.aborted) throw new DialError("stopped", "The connection was stopped.");
      if (agents.has(name)) throw new DialError("refused", `The name ${name} is in use.`, 409);
      const queue = createPostQueue(() => {
        agents.delete(name);
        stopListening();
      });
      agents.set(name, { queue, tools });
      listen();
      return createChannel(name, queue, tools, (text) => {
        streams().output.write(`${name}: ${safeText(text).replaceAll("\n", "\n  ")}\n`);
        deliver(name, true, text);
      });
    },
  };
}

export const terminal = createTerminal(() => ({ input: process.stdin, output: process.stdout }));

function createChannel(name: string, queue: PostQueue, tools: ChannelTools, say: (text: string) => void): Channel {
  return {
    abilities: ABILITIES,
    self: { id: name, name },
    posts: queue.posts,
    closed: queue.closed,
    close: queue.end,
    async post(draft) {
      if (queue.ended) throw new ChannelError("closed", "The channel has closed.");
      checkDraft(draft, ABILITIES);
      if (draft.room !== ROOM) throw new ChannelError("no-access", `The only room is ${ROOM}.`);
      say(toText(draft));
      return { id: tools.uniqueId() };
    },
  };
}

/** Escape sequences would control the console. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;

function toText({ mentions = [], text }: PostDraft): string {
  const missing = mentions.map(({ name }) => name).filter((name) => !mentionsName(text, name));
  return [...missing.map((name) => `@${name}`), text].join(" ").replaceAll(CONTROLS, "");
}

function toPost(name: string, alone: boolean, sender: string, bot: boolean, text: string, tools: ChannelTools): Post {
  return {
    id: tools.uniqueId(),
    room: ROOM,
    direct: alone,
    sender: { id: sender, name: sender, bot, self: false, verified: true },
    text,
    mentions: findMentions(text, name),
    files: [],
    at: tools.clock.now(),
  };
}
