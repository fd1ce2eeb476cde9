/**
 * Matrix over its client-server API, in rooms without encryption. Its events have no mark for bots but `m.notice`,
 * which bots must not answer: a notice counts as a bot's post, and so does one with the automated mark of MSC3955,
 * which our own posts carry.
 */

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
import { createMatrixApi, type MatrixApi, MatrixError, toPostError } from "./matrix/api.ts";
import { toContent, toReplacement } from "./matrix/content.ts";
import { MatrixRooms } from "./matrix/rooms.ts";
import { findStart, syncRooms } from "./matrix/sync.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";
import { tokenAccount } from "./token-account.ts";

const settingsSchema = z.strictObject({
  homeserver: z
    .url({ protocol: /^https?$/ })
    .describe("Base URL of the homeserver, e.g. `https://matrix.example.org`."),
  token: z.string().min(1).describe("Access token of the agent's account."),
  rooms: z
    .array(z.string().regex(/^[!#].+/, "a room id (`!…`) or an alias (`#…:server`)"))
    .min(1)
    .describe("Rooms to join, by id or alias. Invitations to other rooms are not accepted."),
});

type MatrixSettings = z.infer<typeof settingsSchema>;

const ABILITIES: ChannelAbilities = {
  // An event has 65,536 bytes with all that the server adds; escaping may double the text.
  text: { max: 30_000, unit: "bytes" },
  lines: true,
  // Where the homeserver does not say more or less.
  maxFileBytes: 10 * 1024 * 1024,
  edits: true,
  replies: true,
  seesBots: "all",
  // Servers choose it and say so by 429; Synapse accepts ten at once by default.
  rate: { posts: 10, perMs: 10_000 },
  history: true,
};

export const matrix: Network<MatrixSettings> = {
  name: "matrix",
  title: "Matrix",
  packages: [],
  settings: settingsSchema,
  account: ({ homeserver, token }) => `${tokenAccount(token)}@${new URL(homeserver).host}`,
  secrets: ({ token }) => [token],
  rooms: ({ rooms }) => rooms,
  setup: [
    "Create an account for the agent on your homeserver, e.g. in Element with «Create account», or with `register_new_matrix_user` of Synapse.",
    "Log in as that account and copy «All settings → Help & About → Advanced → Access Token» into `token`. Do not log out: that revokes the token; close the window instead.",
    "Copy «Homeserver is …» of the same page into `homeserver`.",
    "Create the room with «Enable end-to-end encryption» switched off (it cannot be switched off later), invite the account, and copy «Room settings → Advanced → Internal room ID», or an alias, into `rooms`.",
  ],
  abilities: ABILITIES,
  open,
};

async function open(settings: MatrixSettings, options: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const api = createMatrixApi(settings, tools.clock);
  try {
    const { user_id: id } = await api.get<{ user_id: string }>("v3/account/whoami", { signal: options.signal });
    const rooms = new MatrixRooms(api, id, tools.log);
    await rooms.enter(settings.rooms, options.signal);
    const name = await displayNameOf(api, id, options.signal);
    const maxFileBytes = await uploadLimit(api, options.signal);
    const start = await findStart({ api, rooms, signal: options.signal });
    return new MatrixChannel({ api, rooms, id, name, maxFileBytes, start }, options, tools);
  } catch (error) {
    throw toDialError(error, options.signal);
  }
}

interface Opened {
  readonly api: MatrixApi;
  readonly rooms: MatrixRooms;
  readonly id: string;
  readonly name: string;
  readonly maxFileBytes: number;
  readonly start: string;
}

class MatrixChannel implements Channel {
  readonly abilities: ChannelAbilities;
  readonly self: Channel["self"];
  readonly posts: Channel["posts"];
  readonly closed: Channel["closed"];
  readonly #api: MatrixApi;
  readonly #rooms: MatrixRooms;
  readonly #queue = createPostQueue(() => this.#closing.abort());
  readonly #tools: ChannelTools;
  readonly #closing = new AbortController();

  constructor({ api, id, maxFileBytes, name, rooms, start }: Opened, { cursors }: ChannelOptions, tools: ChannelTools) {
    this.self = { id, name };
    this.abilities = { ...ABILITIES, maxFileBytes };
    this.posts = this.#queue.posts;
    this.closed = this.#queue.closed;
    this.#api = api;
    this.#rooms = rooms;
    this.#tools = tools;
    const { signal } = this.#closing;
    const context = { api, rooms, tools, self: id, queue: this.#queue, signal };
    void syncRooms(context, start, cursors).catch((error: unknown) => this.close(ABNORMAL_CLOSURE, describe(error)));
  }

  close(code?: number, reason?: string): void {
    this.#queue.end(code, reason);
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    const { files = [], key = this.#tools.uniqueId() } = draft;
    const room = this.#requireRoom(draft);
    try {
      const uploads = [];
      for (const file of files) uploads.push({ file, uri: await this.#api.upload(file, this.#closing.signal) });
      const [first, ...others] = uploads;
      // The text is the caption of the first file; the others come before it, so that they are there when it arrives.
      for (const [index, upload] of others.entries()) {
        await this.#send(room, `${key}.${index + 1}`, toContent({ ...draft, text: "", mentions: [] }, upload));
      }
      return { id: await this.#send(room, key, toContent(draft, first)) };
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async edit(id: string, draft: PostDraft): Promise<void> {
    const room = this.#requireRoom(draft);
    try {
      await this.#send(room, this.#tools.uniqueId(), toReplacement(id, draft));
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async delete(id: string, name: string): Promise<void> {
    const room = this.#rooms.find(name)?.id ?? name;
    const transaction = encodeURIComponent(this.#tools.uniqueId());
    const path = `v3/rooms/${encodeURIComponent(room)}/redact/${encodeURIComponent(id)}/${transaction}`;
    try {
      await this.#api.put(path, {}, this.#closing.signal);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async #send(room: string, transaction: string, content: object): Promise<string> {
    const path = `v3/rooms/${encodeURIComponent(room)}/send/m.room.message/${encodeURIComponent(transaction)}`;
    const { event_id } = await this.#api.put<{ event_id: string }>(path, content, this.#closing.signal);
    return event_id;
  }

  #requireRoom(draft: PostDraft): string {
    if (this.#queue.ended) throw new ChannelError("closed", "The channel has closed.");
    checkDraft(draft, this.abilities);
    const { room: name } = draft;
    const room = this.#rooms.find(name);
    if (room === undefined) throw new ChannelError("no-access", `Not a member of the Matrix room ${name}.`);
    if (!room.encrypted) return room.id;
    throw new ChannelError("no-access", `The Matrix room ${name} is encrypted, which is not supported.`);
  }

  #explain(error: unknown): unknown {
    if (this.#queue.ended) return error;
    if (error instanceof MatrixError && error.status === 401) this.close(ABNORMAL_CLOSURE, error.message);
    return toPostError(error);
  }
}

async function displayNameOf(api: MatrixApi, id: string, signal: AbortSignal): Promise<string> {
  const path = `v3/profile/${encodeURIComponent(id)}/displayname`;
  const profile = await api.find<{ displayname?: string }>(path, signal);
  return profile?.displayname ?? id;
}

async function uploadLimit(api: MatrixApi, signal: AbortSignal): Promise<number> {
  const limits = await api.find<{ "m.upload.size"?: number }>("v1/media/config", signal);
  return limits?.["m.upload.size"] ?? ABILITIES.maxFileBytes;
}

function toDialError(error: unknown, signal: AbortSignal): DialError {
  if (error instanceof DialError) return error;
  if (signal.aborted) return new DialError("stopped", "The dialling was stopped.");
  if (!(error instanceof MatrixError)) {
    return new DialError("unreachable", `The homeserver could not be reached: ${describe(error)}`);
  }
  if (error.status === 401) {
    return new DialError(
      "refused",
      "The homeserver does not accept `token`. Copy it again from «All settings → Help & About → Advanced → Access Token»; logging out revokes it.",
      401,
    );
  }
  return new DialError("refused", `The homeserver refused the connection: ${error.message}`, error.status);
}

/** Of failed requests, the reason is in the cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
