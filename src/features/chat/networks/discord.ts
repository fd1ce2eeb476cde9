/** Discord through discord.js: a bot in the servers that it was invited to, and direct messages to it. */

import { createHash } from "node:crypto";
import type { APIMessage, Client } from "discord.js";
import { z } from "zod";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE, INTERNAL_ERROR_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { explainClose, toChannelError, toDialError } from "./discord/errors.ts";
import { locate, readMissed, SNOWFLAKE, toPost } from "./discord/posts.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";
import { describeError } from "./redact.ts";
import { tokenAccount } from "./token-account.ts";

const settings = z.strictObject({
  token: z.string().min(1).describe("Token of the bot: Developer Portal → Bot → Token."),
  api: z.string().exactOptional().describe("Base URL of the REST API; default: `https://discord.com/api`."),
  rooms: z
    .array(z.string())
    .exactOptional()
    .describe("Ids of the channels to read; default: all that the bot can see. Direct messages are always read."),
});
type Settings = z.infer<typeof settings>;

const MAX_CONTENT = 2_000;
/** Mentions are part of the content: four fit. */
const MENTION_SPACE = 100;

const abilities: ChannelAbilities = {
  text: { max: MAX_CONTENT - MENTION_SPACE, unit: "characters" },
  lines: true,
  maxFileBytes: 10 * 1024 * 1024,
  edits: true,
  replies: true,
  seesBots: "all",
  rate: { posts: 5, perMs: 5_000 },
  history: true,
};

export const discord: Network<Settings> = {
  name: "discord",
  title: "Discord",
  packages: ["discord.js"],
  settings,
  // A token begins with the id of the bot.
  account: ({ token }) => tokenAccount(token, /^\w+(?=\.)/),
  secrets: ({ token }) => [token],
  rooms: ({ rooms }) => rooms,
  setup: [
    "Open https://discord.com/developers/applications and create an application with New Application.",
    "Bot → Token → Reset Token, and copy the token into `token`.",
    "Bot → Privileged Gateway Intents → enable Message Content Intent. Without it Discord refuses the connection with close code 4014.",
    "OAuth2 → OAuth2 URL Generator: scope `bot`; permissions View Channels, Send Messages, Send Messages in Threads, Attach Files, Read Message History. Open the generated URL to invite the bot to a server.",
    "To read only some channels: User Settings → Advanced → Developer Mode, then Copy Channel ID in the channel's menu, into `rooms`.",
    "The bot sees posts of other bots. Whether it answers them is decided by `allowBots`.",
  ],
  abilities,
  open,
};

const MAX_NONCE = 25;

async function open(settings: Settings, { cursors, signal }: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const library = await loadPackage(discord, () => import("discord.js"));
  const { Client, Events, GatewayIntentBits, Options, Routes } = library;
  const client = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      GatewayIntentBits.MessageContent,
    ],
    makeCache: Options.cacheWithLimits({ MessageManager: 0, UserManager: 0, GuildMemberManager: 0 }),
    rest: {
      ...(settings.api === undefined ? {} : { api: settings.api }),
      // Pace is the caller's business: it has to know that a post was not accepted.
      rejectOnRateLimit: ({ method }) => method.toUpperCase() !== "GET",
    },
  });
  const self = await connect(client, Events, settings, signal);

  const queue = createPostQueue(() => client.destroy());
  watch(client, Events, queue.end);

  const receive = async (message: APIMessage, edited: boolean): Promise<void> => {
    const place = await locate(client, message);
    const post = place === undefined ? undefined : toPost(message, edited, place, self);
    if (post !== undefined) queue.push(post);
  };
  const warn = (error: unknown): void =>
    tools.log.warn({ reason: describeError(error, [settings.token]) }, "Posts of Discord could not be read.");

  // In order: what was missed comes before what arrives now.
  let received = readMissed(client, Routes.channelMessages, cursors, (message) => receive(message, false), warn);
  client.on(Events.Raw, ({ t, d }: { t: string | null; d: APIMessage }) => {
    if (t !== "MESSAGE_CREATE" && t !== "MESSAGE_UPDATE") return;
    received = received.then(() => receive(d, t === "MESSAGE_UPDATE")).catch(warn);
  });

  const send = async <T>(draft: PostDraft, request: (room: string) => Promise<T>): Promise<T> => {
    if (queue.ended) throw new ChannelError("closed", "The connection to Discord is closed.");
    checkDraft(draft, abilities);
    const room = draft.thread ?? draft.room;
    if (!SNOWFLAKE.test(room)) throw new ChannelError("no-access", `Discord has no channel with the id ${room}.`);
    return await request(room).catch((error: unknown) => {
      throw toChannelError(error, library, settings.token);
    });
  };

  return {
    abilities,
    self,
    posts: queue.posts,
    closed: queue.closed,
    close: queue.end,
    async post(draft) {
      const body = {
        ...toContent(draft),
        ...(draft.replyTo === undefined
          ? {}
          : { message_reference: { message_id: draft.replyTo, fail_if_not_exists: false } }),
        nonce: toNonce(draft.key ?? tools.uniqueId()),
        enforce_nonce: true,
      };
      const files = toFiles(draft);
      const request = (room: string) => client.rest.post(Routes.channelMessages(room), { body, files });
      const { id } = (await send(draft, request)) as Pick<APIMessage, "id">;
      return { id };
    },
    async edit(id, draft) {
      const request = { body: toContent(draft), files: toFiles(draft) };
      await send(draft, (room) => client.rest.patch(Routes.channelMessage(room, id), request));
    },
    async delete(id, room) {
      await client.rest.delete(Routes.channelMessage(room, id)).catch((error: unknown) => {
        throw toChannelError(error, library, settings.token);
      });
    },
  };
}

type Library = typeof import("discord.js");

/** Resolves with the bot's own user once its servers and channels are known. */
async function connect(
  client: Client,
  Events: Library["Events"],
  { token }: Settings,
  signal: AbortSignal,
): Promise<Channel["self"]> {
  let code = 0;
  client.once(Events.ShardDisconnect, (event) => {
    code = event.code;
  });
  let onAbort = (): void => {};
  const stopped = new Promise<never>((_, reject) => {
    onAbort = () => reject(new DialError("stopped", "The connection was stopped."));
  });
  signal.addEventListener("abort", onAbort);
  const ready = new Promise<void>((resolve, reject) => {
    client.once(Events.ClientReady, () => resolve());
    // A gateway that cannot be reached is tried again by the library, for ever.
    client.once(Events.ShardReconnecting, () =>
      reject(new DialError("unreachable", "The gateway closed the connection.")),
    );
  });
  try {
    if (signal.aborted) onAbort();
    else await Promise.race([stopped, Promise.all([client.login(token), ready])]);
    if (signal.aborted) await stopped;
    const { id, username: name } = client.user ?? { id: "", username: "" };
    return { id, name };
  } catch (error) {
    await client.destroy();
    throw toDialError(error, code, token);
  } finally {
    signal.removeEventListener("abort", onAbort);
    client.removeAllListeners();
  }
}

/** The library resumes a session once, so that nothing is missed; otherwise the channel closes. */
function watch(client: Client, Events: Library["Events"], end: (code: number, reason: string) => void): void {
  let resuming = false;
  client.on(Events.ShardResume, () => {
    resuming = false;
  });
  client.on(Events.ShardReconnecting, () => {
    if (resuming) end(ABNORMAL_CLOSURE, "The gateway cannot be reached.");
    resuming = true;
  });
  client.on(Events.ShardReady, () => end(ABNORMAL_CLOSURE, "The gateway has ended the session."));
  client.on(Events.ShardDisconnect, ({ code }) =>
    end(code, explainClose(code) ?? "The gateway closed the connection."),
  );
  client.on(Events.Invalidated, () => end(INTERNAL_ERROR_CLOSURE, "The gateway has ended the session."));
  client.on(Events.Error, () => {});
  client.on(Events.ShardError, () => {});
}

/** Nobody is notified but those whom the draft names, whatever the text has in it. */
function toContent({ mentions = [], text }: PostDraft) {
  const users = mentions.map(({ id }) => id).filter((id) => SNOWFLAKE.test(id));
  const prefix = users.map((id) => `<@${id}> `).join("");
  return { content: prefix + text, allowed_mentions: { parse: [], users, replied_user: true } };
}

function toFiles({ files = [] }: PostDraft) {
  return files.map(({ bytes, mediaType, name }) => ({ name, contentType: mediaType, data: Buffer.from(bytes) }));
}

/** Discord keeps one message per nonce, for some minutes: a request may be repeated. */
function toNonce(key: string): string {
  return createHash("sha256").update(key).digest("base64url").slice(0, MAX_NONCE);
}
