/** Telegram through grammY: a bot in groups and private chats, which asks for updates by long polling. */

import type { Api, GrammyError } from "grammy";
import type { UserFromGetMe } from "grammy/types";
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
import { safeFileName } from "../../../core/wire/safe-file-name.ts";
import { checkDraft } from "./check-draft.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";
import { describeError } from "./redact.ts";
import { addMentions } from "./telegram/mentions.ts";
import { toPosts } from "./telegram/posts.ts";
import { tokenAccount } from "./token-account.ts";
import { createUnacknowledged } from "./unacknowledged.ts";

const settings = z.strictObject({
  token: z.string().min(1).describe("Token of the bot, from BotFather."),
  apiRoot: z.string().exactOptional().describe("Base URL of the Bot API; default: `https://api.telegram.org`."),
  rooms: z
    .array(z.string())
    .exactOptional()
    .describe("Ids of the groups to read; default: all that the bot is in. Private chats are always read."),
});
type Settings = z.infer<typeof settings>;

const MAX_TEXT = 4_096;
const MAX_CAPTION = 1_024;
/** Mentions are part of the text: two fit. */
const MENTION_SPACE = 96;

const abilities: ChannelAbilities = {
  text: { max: MAX_TEXT - MENTION_SPACE, unit: "characters", maxWithFiles: MAX_CAPTION - MENTION_SPACE },
  lines: true,
  // A bot may send 50 MB, but other bots can download 20 MB.
  maxFileBytes: 20_000_000,
  edits: true,
  replies: true,
  seesBots: "mentions",
  // That of groups; private chats allow one per second.
  rate: { posts: 20, perMs: 60_000 },
  history: true,
};

export const telegram: Network<Settings> = {
  name: "telegram",
  title: "Telegram",
  exclusive: true,
  packages: ["grammy"],
  settings,
  account: ({ token }) => tokenAccount(token, /^\d+(?=:)/),
  secrets: ({ token }) => [token],
  rooms: ({ rooms }) => rooms,
  setup: [
    "Open a chat with @BotFather, send /newbot, and copy the token into `token`.",
    "Add the bot to a group. In privacy mode it sees there only commands such as /a2a@its_name and replies to its own posts; BotFather → /setprivacy → Disable lets it see all posts, after it was removed from the group and added again.",
    "Telegram hides bots from each other unless BotFather → Bot Settings → Bot-to-Bot Communication Mode is enabled: for one of two bots that address each other by /a2a@its_name or by replies, for each bot that writes to another in private.",
    "One process at a time can receive the posts of a bot, and none while a webhook is set for it (deleteWebhook removes it).",
    "To read only some groups: their ids, which begin with -100, into `rooms`. web.telegram.org shows the id in the address of a group.",
  ],
  abilities,
  open,
};

const API_ROOT = "https://api.telegram.org";
const MAX_ALBUM = 10;
const POLL_SECONDS = 30;
const CONFIRM_MS = 3_000;

async function open(settings: Settings, { signal }: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const { token } = settings;
  const library = await loadPackage(telegram, () => import("grammy"));
  const root = (settings.apiRoot ?? API_ROOT).replace(/\/+$/, "");
  const api = new library.Api(token, { apiRoot: root, timeoutSeconds: 2 * POLL_SECONDS });
  // Of an error within Telegram it is not known what became of the request.
  const isRefusal = (error: unknown): error is GrammyError =>
    error instanceof library.GrammyError && error.error_code < 500;
  const describe = (error: unknown): string =>
    describeError(error instanceof library.HttpError ? error.error : error, [token]);

  const me = await dial(api, signal).catch((error: unknown) => {
    if (error instanceof DialError) throw error;
    const explained = isRefusal(error) ? explain(error) : undefined;
    if (explained !== undefined) throw new DialError("refused", explained);
    throw new DialError("unreachable", `Telegram cannot be reached: ${describe(error)}`);
  });

  const stopping = new AbortController();
  const unacknowledged = createUnacknowledged(tools.clock);
  const queue = createPostQueue(async () => {
    stopping.abort();
    unacknowledged.clear();
    stopWaiting();
    await polling;
  });
  let stopWaiting = (): void => {};

  /** Resolves when all of them are handled, or when the channel ends, with the offset below which they are. */
  async function handle(posts: ReturnType<typeof toPosts>, offset: number): Promise<number> {
    const waiting = new Map(posts.map(({ post, updateId }) => [post, updateId]));
    const newest = posts.at(-1)?.updateId;
    await new Promise<void>((resolve) => {
      stopWaiting = resolve;
      for (const { post } of posts) {
        unacknowledged.hold(post, () => {
          waiting.delete(post);
          if (waiting.size === 0) resolve();
        });
        queue.push(post);
      }
      if (posts.length === 0 || queue.ended) resolve();
    });
    const [first] = waiting.values();
    return first ?? (newest === undefined ? offset : newest + 1);
  }

  /** Telegram keeps updates for a day, until a request confirms them: not before they have been handled here. */
  async function poll(): Promise<void> {
    const allowed_updates = ["message", "edited_message"] as const;
    let confirmed = 0;
    let offset = 0;
    try {
      while (!queue.ended) {
        confirmed = offset;
        const request = { offset, timeout: POLL_SECONDS, allowed_updates };
        const updates = await api.getUpdates(request, toSignal(stopping.signal));
        offset = await handle(toPosts(updates, { me, api, fileRoot: `${root}/file/bot${token}` }), offset);
        const last = updates.at(-1);
        if (!queue.ended && last !== undefined) offset = last.update_id + 1;
      }
    } catch (error) {
      const explained = isRefusal(error) ? explain(error) : undefined;
      queue.end(ABNORMAL_CLOSURE, explained ?? `Telegram cannot be reached: ${describe(error)}`);
    }
    if (offset === confirmed) return;
    // What was handled but not confirmed would come again. That is allowed, so it does not matter if this fails.
    await api.getUpdates({ offset, limit: 1, timeout: 0 }, toSignal(AbortSignal.timeout(CONFIRM_MS))).catch(() => {});
  }
  const polling = poll();

  const call = async <T>(request: () => Promise<T>): Promise<T> => {
    if (queue.ended) throw new ChannelError("closed", "The connection to Telegram is closed.");
    return await request().catch((error: unknown) => {
      throw isRefusal(error) ? toChannelError(error) : new Error(`The request to Telegram failed: ${describe(error)}`);
    });
  };
  const send = async <T>(draft: PostDraft, request: () => Promise<T>): Promise<T> =>
    call(() => {
      checkDraft(draft, abilities);
      return request();
    });
  return {
    abilities,
    self: { id: String(me.id), name: me.username },
    posts: queue.posts,
    acknowledge: unacknowledged.acknowledge,
    closed: queue.closed,
    close: queue.end,
    post: (draft) => send(draft, () => sendDraft(api, draft, library.InputFile)),
    edit: (id, draft) => send(draft, () => editMessage(api, Number(id), draft)),
    delete: async (id, room) => void (await call(() => api.deleteMessage(room, Number(id)))),
  };
}

/** The second request finds out whether updates can be had; it confirms none. */
async function dial(api: Api, signal: AbortSignal): Promise<UserFromGetMe> {
  const stopped = (): DialError => new DialError("stopped", "The connection was stopped.");
  if (signal.aborted) throw stopped();
  try {
    const me = await api.getMe(toSignal(signal));
    await api.getUpdates({ limit: 1, timeout: 0 }, toSignal(signal));
    return me;
  } catch (error) {
    throw signal.aborted ? stopped() : error;
  }
}

type InputFile = typeof import("grammy")["InputFile"];

async function sendDraft(api: Api, draft: PostDraft, InputFile: InputFile): Promise<{ readonly id: string }> {
  const { files = [], replyTo, room, thread } = draft;
  const { entities, text } = addMentions(draft);
  const place = thread === undefined ? {} : { message_thread_id: Number(thread) };
  const reply =
    replyTo === undefined
      ? {}
      : { reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true } };
  const media = files.map(({ bytes, name }) => new InputFile(bytes, toFileName(name)));
  const [document] = media;
  if (media.length > MAX_ALBUM) throw new ChannelError("refused", `The post has more than ${MAX_ALBUM} files.`);

  const options = { ...place, ...reply };
  if (document === undefined) {
    const preview = { link_preview_options: { is_disabled: true } };
    return toId(await api.sendMessage(room, text, { ...options, ...preview, entities }));
  }
  const labels = text === "" ? {} : { caption: text, caption_entities: entities };
  if (media.length === 1) return toId(await api.sendDocument(room, document, { ...options, ...labels }));
  const album = media.map((file, at) => ({ type: "document" as const, media: file, ...(at === 0 ? labels : {}) }));
  return toId((await api.sendMediaGroup(room, album, options))[0]);
}

function toId(message: { readonly message_id: number } | undefined): { readonly id: string } {
  return { id: String(message?.message_id) };
}

async function editMessage(api: Api, id: number, draft: PostDraft): Promise<void> {
  const { entities, text } = addMentions(draft);
  const edited = api.editMessageText(draft.room, id, text, { entities, link_preview_options: { is_disabled: true } });
  await edited.catch(async (error: Error) => {
    if (error.message.includes("message is not modified")) return;
    if (!error.message.includes("no text in the message")) throw error;
    await api.editMessageCaption(draft.room, id, { caption: text, caption_entities: entities });
  });
}

/** The library writes names without quotes. */
function toFileName(name: string): string {
  return safeFileName(name).replaceAll(/[\s;,'()[\]{}%&]+/gu, "_");
}

/** The types of the library are those of a package that it uses where there is no global one. */
function toSignal(signal: AbortSignal): Parameters<Api["getMe"]>[0] {
  return signal as Parameters<Api["getMe"]>[0];
}

/** Refusals that a person can do something about. */
function explain({ description, error_code }: GrammyError): string | undefined {
  if (error_code === 401 || error_code === 404) {
    return "Telegram does not accept the `token`: copy it again from BotFather (/mybots → API Token).";
  }
  if (error_code !== 409) return undefined;
  return description.includes("webhook")
    ? "A webhook is set for this bot, so that Telegram does not give its posts to anyone else: remove it with deleteWebhook."
    : "Another process receives the posts of this bot: Telegram allows one at a time. Stop it, or use a bot of its own for each.";
}

function toChannelError({ description, error_code, parameters }: GrammyError): ChannelError {
  if (error_code === 429) {
    const options = { retryAfterMs: (parameters.retry_after ?? 1) * 1_000 };
    return new ChannelError("rate-limited", "Telegram limits the rate of posts.", options);
  }
  if (parameters.migrate_to_chat_id !== undefined) {
    return new ChannelError("no-access", `The group is now the supergroup ${parameters.migrate_to_chat_id}.`);
  }
  const hidden = error_code === 403 || /chat not found|thread not found/.test(description);
  return new ChannelError(hidden ? "no-access" : "refused", `Telegram refuses the post: ${description}`);
}
