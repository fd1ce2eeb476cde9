import type { Client, xml as createElement, Element } from "@xmpp/client";
import { z } from "zod";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type Post,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue, type PostQueue } from "./post-queue.ts";
import { adaptClient } from "./xmpp/adapt-client.ts";
import {
  bareJid,
  NS_MUC,
  NS_MUC_OWNER,
  NS_MUC_USER,
  type Occupants,
  resourceOf,
  StanzaIds,
  toPost,
  toStanza,
} from "./xmpp/stanzas.ts";
import { findUploadService, type UploadService, unreadableFile } from "./xmpp/upload.ts";

const CONNECT_TIMEOUT_MS = 30_000;
const PING_INTERVAL_MS = 60_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** Escaped, it still fits into the 65,536 bytes of a stanza that servers commonly accept. */
const MAX_TEXT_BYTES = 10_000;
/** Where the server limits the rate without saying for how long. */
const RETRY_AFTER_MS = 2_000;
const NO_ACCESS = [
  "forbidden",
  "item-not-found",
  "not-acceptable",
  "not-authorized",
  "not-allowed",
  "service-unavailable",
];
const RATE_LIMITED = ["resource-constraint", "policy-violation"];

const JID = /^[^\s@/]+@[^\s@/]+$/;

const settings = z.strictObject({
  service: z
    .string()
    .regex(/^(?:xmpps?|wss?):\/\/\S+$/, { error: "must be an address with xmpp:, xmpps:, ws: or wss:" })
    .describe(
      "Address of the server, e.g. `xmpps://chat.example.com:5223`. `xmpp:` uses TLS where the server offers it.",
    ),
  jid: z
    .string()
    .regex(JID, { error: "must be an address like agent@example.com" })
    .toLowerCase()
    .describe("Account of the agent."),
  password: z.string().min(1).describe("Password of the account."),
  rooms: z
    .array(z.string().regex(JID, { error: "must be an address like room@rooms.example.com" }).toLowerCase())
    .min(1)
    .describe("Addresses of the rooms to join (multi-user chat)."),
  nick: z.string().min(1).exactOptional().describe("Nick in the rooms; default: the name of the account."),
});

type XmppSettings = z.infer<typeof settings>;

const ABILITIES: ChannelAbilities = {
  text: { max: MAX_TEXT_BYTES, unit: "bytes" },
  lines: true,
  // Where the server takes uploads; it says how large.
  maxFileBytes: 10 * 1024 * 1024,
  edits: true,
  replies: true,
  seesBots: "all",
  rate: { posts: 10, perMs: 1_000 },
  history: true,
};

export const xmpp: Network<XmppSettings> = {
  name: "xmpp",
  title: "XMPP",
  packages: ["@xmpp/client"],
  settings,
  account: ({ jid }) => jid,
  isOwn: ({ jid, nick = jid.split("@")[0] }, written) => written === jid || written === nick,
  secrets: ({ password }) => [password],
  rooms: ({ rooms }) => rooms,
  // Nicks, after the slash, are case-sensitive.
  toId: (written) => written.replace(/^[^/]*/, (jid) => jid.toLowerCase()),
  setup: [
    "Create an account for the agent, e.g. `prosodyctl adduser agent@example.com`; put it into `jid` and `password`, and the address of the server into `service`.",
    "Put the addresses of the rooms into `rooms`. Rooms that do not exist are created.",
    "Let the rooms show real addresses (`Who can see real JIDs: Anyone`): else senders are known by their nicks, which anyone can take.",
    "For files, the server needs an upload service (XEP-0363), e.g. `http_file_share` of Prosody.",
  ],
  abilities: ABILITIES,
  async open(options, { cursors, signal, temporary = false }, tools) {
    const { client: createClient, xml } = await loadPackage(xmpp, () => import("@xmpp/client"));
    if (/^ws/.test(options.service) && !("WebSocket" in globalThis)) {
      throw new DialError("unreachable", "ws: and wss: need Node 22 or newer; use xmpp: or xmpps:.");
    }
    const [username = "", domain = ""] = options.jid.split("@");
    // The nick of a server that is in the room with this account stays its own.
    const nick = temporary ? { nick: `${options.nick ?? username}-${tools.uniqueId().slice(0, 4)}` } : {};
    const client = createClient({ service: options.service, domain, username, password: options.password });
    adaptClient(client);
    return await openChannel({ client, xml, settings: { ...options, ...nick }, domain, tools }, cursors, signal);
  },
};

interface Connection {
  readonly client: Client;
  readonly xml: typeof createElement;
  readonly settings: XmppSettings;
  readonly domain: string;
  readonly tools: ChannelTools;
}

/** Rejects with a DialError, whatever happens meanwhile. */
async function openChannel(
  connection: Connection,
  cursors: ChannelOptions["cursors"],
  signal: AbortSignal,
): Promise<Channel> {
  const { client, tools } = connection;
  let release = (): void => {};
  const interrupted = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new DialError("stopped", "The connection was stopped."));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    const cancel = tools.clock.after(CONNECT_TIMEOUT_MS, () =>
      reject(new DialError("timeout", `The server did not answer within ${CONNECT_TIMEOUT_MS / 1000} s.`)),
    );
    release = () => {
      cancel();
      signal.removeEventListener("abort", stop);
    };
  });
  try {
    return await Promise.race([connect(connection, cursors), interrupted]);
  } catch (error) {
    void client.stop().catch(() => {});
    throw toDialError(error);
  } finally {
    release();
  }
}

async function connect(connection: Connection, cursors: ChannelOptions["cursors"]): Promise<Channel> {
  const { client, domain, settings, xml } = connection;
  let abandon = (_: unknown): void => {};
  const disconnected = new Promise<never>((_, reject) => {
    abandon = reject;
  });
  disconnected.catch(() => {});
  client.on("error", abandon);
  client.on("disconnect", () => abandon(new DialError("unreachable", "The server closed the connection.")));
  const online = new Promise<void>((resolve) => client.on("online", () => resolve()));
  // `start` of the library leaves a rejection behind if the connection ends meanwhile.
  client
    .connect(settings.service)
    .then(() => client.open({ domain }))
    .catch(abandon);
  await Promise.race([online, disconnected]);
  await client.send(xml("presence"));
  const upload = await findUploadService(client, xml, domain).catch(() => undefined);
  const channel = new XmppChannel(connection, upload, cursors);
  await Promise.race([Promise.all(settings.rooms.map((room) => channel.join(room))), disconnected]);
  return channel;
}

function toDialError(error: unknown): DialError {
  if (error instanceof DialError) return error;
  const { code, condition, message, name } = error as {
    code?: string;
    condition?: string;
    message: string;
    name: string;
  };
  if (name === "SASLError")
    return new DialError("refused", `The server did not accept the account: ${condition ?? message}`);
  if (/CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)/.test(code ?? "")) return new DialError("certificate", message);
  return new DialError(name === "TimeoutError" ? "timeout" : "unreachable", message || (code ?? "unreachable"));
}

class XmppChannel implements Channel {
  readonly abilities: ChannelAbilities;
  readonly self: Channel["self"];
  readonly posts: Channel["posts"];
  readonly closed: Channel["closed"];
  readonly #connection: Connection;
  readonly #upload: UploadService | undefined;
  readonly #nick: string;
  readonly #queue: PostQueue;
  readonly #occupants = new Map<string, Occupants>();
  readonly #ids = new StanzaIds();
  readonly #cursors: ChannelOptions["cursors"];
  /** Posts from before this connection, until all of a room are there. */
  readonly #history = new Map<string, Post[]>();
  readonly #joining = new Map<string, { resolve(): void; reject(error: Error): void }>();
  readonly #unconfirmed = new Map<string, { resolve(): void; reject(error: Error): void }>();

  constructor(connection: Connection, upload: UploadService | undefined, cursors: ChannelOptions["cursors"]) {
    const { client, settings, tools } = connection;
    this.#connection = connection;
    this.#upload = upload;
    this.#cursors = cursors;
    this.#nick = settings.nick ?? settings.jid.split("@")[0] ?? "";
    this.self = { id: settings.jid, name: this.#nick };
    this.abilities = { ...ABILITIES, maxFileBytes: upload?.maxBytes ?? 0 };
    let cancelPing = (): void => {};
    let disconnected = false;
    this.#queue = createPostQueue(async () => {
      cancelPing();
      for (const { reject } of this.#unconfirmed.values())
        reject(new Error("The connection closed before the server answered."));
      this.#unconfirmed.clear();
      if (disconnected) return;
      const late = new Promise<void>((resolve) => void tools.clock.after(CLOSE_TIMEOUT_MS, resolve));
      await Promise.race([client.stop().catch(() => {}), late]);
    });
    this.posts = this.#queue.posts;
    this.closed = this.#queue.closed;
    client.on("disconnect", () => {
      disconnected = true;
      this.#queue.end(ABNORMAL_CLOSURE, "The server closed the connection.");
    });
    client.on("stanza", (stanza) => this.#receive(stanza));
    const ping = (): void => {
      cancelPing = tools.clock.after(PING_INTERVAL_MS, () => {
        this.#ping().then(ping, () => this.#queue.end(ABNORMAL_CLOSURE, "The server does not answer."));
      });
    };
    ping();
  }

  close(code?: number, reason?: string): void {
    this.#queue.end(code, reason);
  }

  async join(room: string): Promise<void> {
    const { client, xml } = this.#connection;
    const [since] = this.#cursors.get(room)?.split(" ") ?? [];
    const history = xml("history", since === undefined ? { maxstanzas: "0" } : { since });
    this.#occupants.set(room, new Map());
    this.#history.set(room, []);
    const joined = new Promise<void>((resolve, reject) => this.#joining.set(room, { resolve, reject }));
    await client.send(xml("presence", { to: `${room}/${this.#nick}` }, xml("x", { xmlns: NS_MUC }, history)));
    await joined;
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    const id = draft.key ?? this.#connection.tools.uniqueId();
    await this.#send(id, draft, undefined);
    return { id };
  }

  async edit(id: string, draft: PostDraft): Promise<void> {
    await this.#send(this.#connection.tools.uniqueId(), draft, id);
  }

  async #send(id: string, draft: PostDraft, edits: string | undefined): Promise<void> {
    const { client, xml } = this.#connection;
    if (this.#queue.ended) throw new ChannelError("closed", "The channel has closed.");
    checkDraft(draft, this.abilities);
    const { mentions = [], replyTo, room: to, text } = draft;
    const groupchat = this.#occupants.has(to);
    if (!groupchat && !JID.test(bareJid(to))) throw new ChannelError("no-access", "This is not a room of XMPP.");
    const files = [];
    for (const file of draft.files ?? []) files.push(await this.#upload?.upload(file));
    const confirmed = new Promise<void>((resolve, reject) => this.#unconfirmed.set(id, { resolve, reject }));
    const stanza = toStanza(xml, {
      id,
      to,
      groupchat,
      text,
      mentions,
      edits,
      replyTo: replyTo === undefined ? undefined : this.#ids.toStanza(replyTo),
      files: files.filter((file) => file !== undefined),
    });
    try {
      await client.send(stanza);
      // A room repeats the post to its sender; elsewhere an error would come before the answer to this ping.
      await (groupchat ? confirmed : Promise.race([confirmed, this.#ping()]));
    } finally {
      this.#unconfirmed.delete(id);
    }
  }

  async #ping(): Promise<void> {
    const { client, domain, xml } = this.#connection;
    await client.iqCaller.request(xml("iq", { type: "get", to: domain }, xml("ping", { xmlns: "urn:xmpp:ping" })));
  }

  #receive(stanza: Element): void {
    if (stanza.is("presence")) this.#receivePresence(stanza);
    else if (stanza.attrs.type === "error") this.#receiveError(stanza);
    else if (stanza.is("message")) this.#receiveMessage(stanza);
  }

  #receivePresence(stanza: Element): void {
    const { from = "", type } = stanza.attrs;
    const room = bareJid(from);
    const occupants = this.#occupants.get(room);
    if (occupants === undefined) return;
    const joining = this.#joining.get(room);
    const nick = resourceOf(from);
    if (type === "error") {
      joining?.reject(new DialError("refused", `The room ${room} refused: ${conditionOf(stanza)}`));
      return;
    }
    const user = stanza.getChild("x", NS_MUC_USER);
    const own = user?.getChildren("status").some(({ attrs }) => attrs.code === "110") === true;
    if (type === "unavailable") {
      occupants.delete(nick);
      if (own && nick === this.#nick) this.#queue.end(ABNORMAL_CLOSURE, `No longer in the room ${room}.`);
      return;
    }
    const jid = user?.getChild("item")?.attrs.jid;
    occupants.set(nick, jid === undefined ? undefined : bareJid(jid));
    if (!own || joining === undefined) return;
    const created = user?.getChildren("status").some(({ attrs }) => attrs.code === "201") === true;
    if (!created) joining.resolve();
    else this.#unlock(room).then(joining.resolve, joining.reject);
  }

  /** A room that was just created is closed to others until its owner accepts a configuration (XEP-0045 §10.1.2). */
  async #unlock(room: string): Promise<void> {
    const { client, xml } = this.#connection;
    const form = xml("x", { xmlns: "jabber:x:data", type: "submit" });
    await client.iqCaller.request(xml("iq", { type: "set", to: room }, xml("query", { xmlns: NS_MUC_OWNER }, form)));
  }

  #receiveError(stanza: Element): void {
    const condition = conditionOf(stanza);
    const message = `The server refused the post: ${condition}`;
    const waiting = this.#unconfirmed.get(stanza.attrs.id ?? "");
    if (RATE_LIMITED.includes(condition)) {
      waiting?.reject(new ChannelError("rate-limited", message, { retryAfterMs: RETRY_AFTER_MS }));
    } else waiting?.reject(new ChannelError(NO_ACCESS.includes(condition) ? "no-access" : "refused", message));
  }

  #receiveMessage(stanza: Element): void {
    const { settings, tools } = this.#connection;
    const room = bareJid(stanza.attrs.from ?? "");
    const received = toPost(stanza, {
      self: this.self,
      nick: this.#nick,
      rooms: this.#occupants,
      ids: this.#ids,
      now: () => tools.clock.now(),
      uniqueId: tools.uniqueId,
      toFile: (url, name) => this.#upload?.toFile(url, name) ?? unreadableFile(name),
    });
    if (received === undefined) {
      // The subject of a room follows its history (XEP-0045 §7.2.15).
      if (stanza.getChild("subject") !== undefined) this.#flushHistory(room);
      return;
    }
    const { delayed, ...post } = received;
    const history = this.#history.get(room);
    if (delayed && !post.direct && history !== undefined) {
      history.push(post);
      return;
    }
    this.#flushHistory(room);
    if (post.sender.self) this.#unconfirmed.get(post.id)?.resolve();
    if (post.sender.id !== settings.jid || post.sender.self) this.#queue.push(post);
  }

  /** Delivers what follows the cursor; times of the server have seconds only. */
  #flushHistory(room: string): void {
    const posts = this.#history.get(room);
    if (posts === undefined) return;
    this.#history.delete(room);
    const id = this.#cursors.get(room)?.split(" ").slice(1).join(" ");
    const last = posts.findLastIndex((post) => post.id === id);
    for (const post of posts.slice(last + 1)) this.#queue.push(post);
  }
}

function conditionOf(stanza: Element): string {
  const error = stanza.getChild("error");
  return (
    [...NO_ACCESS, ...RATE_LIMITED, "conflict", "registration-required", "bad-request", "internal-server-error"].find(
      (condition) => error?.getChild(condition) !== undefined,
    ) ?? "undefined-condition"
  );
}
