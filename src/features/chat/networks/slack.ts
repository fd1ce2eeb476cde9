/** Slack through its own libraries: an app in Socket Mode, in the channels that it was added to. */

import type { Logger, SocketModeClient } from "@slack/socket-mode";
import type { WebClient } from "@slack/web-api";
import { z } from "zod";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";
import { APP_TOKEN_HELP, BOT_TOKEN_HELP, explainScope, toChannelError, toDialError, toReason } from "./slack/errors.ts";
import { readMissed } from "./slack/history.ts";
import { type SlackMessage, type SlackReader, toPost } from "./slack/posts.ts";
import { escapeText } from "./slack/text.ts";
import { tokenAccount } from "./token-account.ts";

const settings = z.strictObject({
  appToken: z
    .string()
    .min(1)
    .describe(
      "App-level token with the scope `connections:write`, from Basic Information → App-Level Tokens: `xapp-…`.",
    ),
  botToken: z.string().min(1).describe("Token of the bot, from OAuth & Permissions → Bot User OAuth Token: `xoxb-…`."),
  apiUrl: z.string().exactOptional().describe("Base URL of the Web API; default: `https://slack.com/api/`."),
  rooms: z
    .array(z.string())
    .exactOptional()
    .describe("Ids of the channels to read; default: all that the app was added to. Direct messages are always read."),
});
type Settings = z.infer<typeof settings>;

const SCOPES = [
  "chat:write",
  "channels:history",
  "groups:history",
  "im:history",
  "users:read",
  "files:read",
  "files:write",
];

/** Longer texts than 4,000 characters are not advised, and cut at 40,000. */
const MAX_TEXT = 4_000;
/** Mentions are part of the text: six fit. */
const MENTION_SPACE = 100;

const abilities: ChannelAbilities = {
  text: { max: MAX_TEXT - MENTION_SPACE, unit: "characters" },
  lines: true,
  // Slack allows more, but files are kept in memory.
  maxFileBytes: 50 * 1024 * 1024,
  edits: true,
  // A reply is a thread, which belongs to its first message.
  replies: false,
  threads: true,
  seesBots: "all",
  rate: { posts: 1, perMs: 1_000 },
  history: true,
};

export const slack: Network<Settings> = {
  name: "slack",
  title: "Slack",
  exclusive: true,
  packages: ["@slack/socket-mode", "@slack/web-api"],
  settings,
  account: ({ appToken }) => tokenAccount(appToken, /^xapp-\d+-[A-Z0-9]+(?=-)/),
  secrets: ({ appToken, botToken }) => [appToken, botToken],
  rooms: ({ rooms }) => rooms,
  setup: [
    "Open https://api.slack.com/apps and create an app with Create New App → From scratch.",
    "Socket Mode → Enable Socket Mode.",
    "Basic Information → App-Level Tokens → Generate Token and Scopes, with the scope connections:write. Copy the token (xapp-…) into `appToken`.",
    `OAuth & Permissions → Scopes → Bot Token Scopes: ${SCOPES.join(", ")}.`,
    "Event Subscriptions → Enable Events → Subscribe to bot events: message.channels, message.groups, message.im.",
    "App Home → Show Tabs → Messages Tab, with the box that allows users to send messages, for direct messages.",
    "OAuth & Permissions → Install to Workspace, and copy the Bot User OAuth Token (xoxb-…) into `botToken`. After a change of scopes or events the app has to be installed again.",
    "Add the app to a channel: /invite @its-name there. To read only some channels: Open channel details → Channel ID, into `rooms`.",
  ],
  abilities,
  open,
};

const REQUEST_TIMEOUT_MS = 30_000;
/** Slack shares uploaded files a moment after it has accepted them. */
const SHARE_TIMEOUT_MS = 15_000;

async function open(settings: Settings, { cursors, signal }: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const library = await loadPackage(slack, () => import("@slack/web-api"));
  const sockets = await loadPackage(slack, () => import("@slack/socket-mode"));
  const logger = toSilentLogger(sockets.LogLevel.ERROR);
  const options = {
    ...(settings.apiUrl === undefined ? {} : { slackApiUrl: settings.apiUrl }),
    retryConfig: { retries: 0 },
    timeout: REQUEST_TIMEOUT_MS,
  };
  const web = new library.WebClient(settings.botToken, { ...options, logger, rejectRateLimitedCalls: true });
  const client = new sockets.SocketModeClient({
    appToken: settings.appToken,
    autoReconnectEnabled: false,
    clientOptions: options,
    logger,
  });
  const identity = await dial(web, client, settings, signal);

  const queue = createPostQueue(() => client.disconnect().catch(() => {}));
  client.on("disconnected", () => queue.end(ABNORMAL_CLOSURE, "Slack closed the connection."));

  const reader = createReader(web, identity, settings);
  const uploads = new Map<string, (ts: string) => void>();
  const receive = async (message: SlackMessage): Promise<void> => {
    for (const { id = "" } of message.files ?? [])
      if (message.user === identity.userId) uploads.get(id)?.(message.ts ?? id);
    const post = await toPost(message, reader);
    if (post !== undefined) queue.push(post);
  };
  const warn = (error: unknown): void =>
    tools.log.warn({ reason: toReason(error, slack.secrets(settings)) }, "Posts of Slack could not be read.");

  // In order: what was missed comes before what arrives now.
  let received = readMissed(web, cursors, receive, warn);
  client.on("message", ({ ack, event }: { ack: () => Promise<void>; event: SlackMessage }) => {
    ack().catch(() => {});
    received = received.then(() => receive(event)).catch(warn);
  });

  const send = async <T>(draft: PostDraft, request: (text: string) => Promise<T>): Promise<T> => {
    if (queue.ended) throw new ChannelError("closed", "The connection to Slack is closed.");
    checkDraft(draft, abilities);
    const mentions = (draft.mentions ?? []).map(({ id }) => `<@${escapeText(id)}> `).join("");
    return await request(mentions + escapeText(draft.text)).catch((error: unknown) => {
      throw toChannelError(error, library, slack.secrets(settings));
    });
  };

  /** The id of the post is known when Slack delivers it. */
  async function upload({ files = [], room, thread }: PostDraft, initial_comment: string): Promise<string> {
    const { files: completed } = await web.filesUploadV2({
      channel_id: room,
      ...(thread === undefined ? {} : { thread_ts: thread }),
      initial_comment,
      file_uploads: files.map(({ bytes, name }) => ({ file: Buffer.from(bytes), filename: name })),
    } as Parameters<WebClient["filesUploadV2"]>[0]);
    const id = completed?.[0]?.files?.[0]?.id ?? "";
    return await new Promise((resolve) => {
      const done = (ts: string): void => {
        uploads.delete(id);
        cancel();
        resolve(ts);
      };
      const cancel = tools.clock.after(SHARE_TIMEOUT_MS, () => done(id));
      uploads.set(id, done);
    });
  }

  return {
    abilities,
    self: { id: identity.userId, name: identity.name },
    posts: queue.posts,
    closed: queue.closed,
    close: queue.end,
    post: (draft) =>
      send(draft, async (text) => {
        if ((draft.files ?? []).length > 0) return { id: await upload(draft, text) };
        const place = { channel: draft.room, ...(draft.thread === undefined ? {} : { thread_ts: draft.thread }) };
        const { ts = "" } = await web.chat.postMessage({ ...place, text, parse: "none", unfurl_links: false });
        return { id: ts };
      }),
    edit: (id, draft) =>
      send(draft, async (text) => {
        await web.chat.update({ channel: draft.room, ts: id, text, parse: "none" });
      }),
    delete: async (id, room) => {
      await web.chat.delete({ channel: room, ts: id }).catch((error: unknown) => {
        throw toChannelError(error, library, slack.secrets(settings));
      });
    },
  };
}

interface Identity {
  readonly userId: string;
  readonly botId: string;
  readonly name: string;
}

async function dial(
  web: WebClient,
  client: SocketModeClient,
  settings: Settings,
  signal: AbortSignal,
): Promise<Identity> {
  let onAbort = (): void => {};
  const stopped = new Promise<never>((_, reject) => {
    onAbort = () => reject(new DialError("stopped", "The connection was stopped."));
  });
  signal.addEventListener("abort", onAbort);
  const connect = async (): Promise<Identity> => {
    const {
      bot_id = "",
      response_metadata,
      user = "",
      user_id = "",
    } = await web.auth.test().catch((error: unknown) => {
      throw toDialError(error, slack.secrets(settings), BOT_TOKEN_HELP);
    });
    const scopes = response_metadata?.scopes;
    if (scopes?.includes("chat:write") === false) {
      throw new DialError("refused", explainScope("chat:write"));
    }
    signal.throwIfAborted();
    await client.start().catch((error: unknown) => {
      throw toDialError(error, slack.secrets(settings), APP_TOKEN_HELP);
    });
    if (signal.aborted) await client.disconnect();
    return { userId: user_id, botId: bot_id, name: user };
  };
  try {
    if (signal.aborted) onAbort();
    return await Promise.race([stopped, signal.aborted ? stopped : connect()]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function createReader(web: WebClient, self: Identity, { apiUrl, botToken }: Settings): SlackReader {
  const names = new Map<string, Promise<string>>([[self.userId, Promise.resolve(self.name)]]);
  const home = apiUrl === undefined ? undefined : new URL(apiUrl).origin;
  return {
    self,
    nameOf(user) {
      // Without the scope users:read the id has to do.
      const known =
        names.get(user) ??
        web.users
          .info({ user })
          .then(({ user: found }) => found?.name ?? user)
          .catch(() => user);
      if (names.size >= MAX_NAMES) names.clear();
      names.set(user, known);
      return known;
    },
    authorize: ({ hostname, origin, protocol }) =>
      origin === home || (protocol === "https:" && /(^|\.)slack\.com$/.test(hostname))
        ? { authorization: `Bearer ${botToken}` }
        : undefined,
  };
}

const MAX_NAMES = 10_000;
/** What the libraries log are details of requests, with parts of tokens. */
function toSilentLogger(level: ReturnType<Logger["getLevel"]>): Logger {
  const silent = (): void => {};
  return {
    debug: silent,
    info: silent,
    warn: silent,
    error: silent,
    setLevel: silent,
    getLevel: () => level,
    setName: silent,
  };
}
