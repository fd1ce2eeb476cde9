import type { Client, IrcMessageEvent } from "irc-framework";
import { z } from "zod";
import { type Channel, type ChannelAbilities, ChannelError, type Post } from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { isLoopback } from "../../../core/wire/loopback.ts";
import { checkDraft } from "./check-draft.ts";
import { fromLine, toLine } from "./irc/text.ts";
import { loadPackage } from "./load-package.ts";
import { findMentions } from "./mentions.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";

const TLS_PORT = 6697;
const PLAIN_PORT = 6667;
const CONNECT_TIMEOUT_MS = 30_000;
/** How long the server may take to close the connection after `QUIT`. */
const QUIT_TIMEOUT_MS = 2_000;
/** Of a line with its line break (RFC 2812 §2.3). Servers cut what is longer. */
const MAX_LINE_BYTES = 512;
/** For a host name that the server changes later, e.g. by services. */
const HOST_RESERVE_BYTES = 16;
/** Where the server does not say how long nicks may be (RFC 2812 §1.2.1 has 9; networks of today up to 30). */
const MAX_NICK_BYTES = 30;

/** Status of the error. */
const NICK_IN_USE = 409;

const room = z
  .string()
  .regex(/^[^\s,\p{Cc}]+$/u, { error: "must be the name of a channel, without spaces and commas" })
  .transform((name) => (/^[#&+!]/.test(name) ? name : `#${name}`));

const settings = z.strictObject({
  host: z.string().min(1).describe("Host name of the server."),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .exactOptional()
    .describe(`Default: ${TLS_PORT} with \`tls\`, ${PLAIN_PORT} without.`),
  tls: z
    .boolean()
    .exactOptional()
    .describe(`Default: \`true\` for port ${TLS_PORT}, and without \`port\` for hosts other than this machine.`),
  nick: z
    .string()
    .regex(/^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]*$/, { error: "must be a nick of IRC" })
    .describe("Nick of the agent. It is not replaced by another one if it is in use."),
  channels: z
    .array(z.union([room, z.strictObject({ name: room, key: z.string().regex(/^[^\s,]+$/) })]))
    .min(1)
    .describe("Channels to join: names, with or without `#`, or `{ name, key }`."),
  password: z
    .string()
    .regex(/^[^\s]+$/)
    .exactOptional()
    .describe("Password of the server."),
  account: z
    .strictObject({ name: z.string().min(1), password: z.string().min(1) })
    .exactOptional()
    .describe("Account to log in to by SASL: `name` and `password`."),
});

type IrcSettings = z.infer<typeof settings>;

const ABILITIES: ChannelAbilities = {
  // With names of usual length.
  text: { max: 380, unit: "bytes" },
  lines: false,
  maxFileBytes: 0,
  edits: false,
  replies: false,
  seesBots: "all",
  rate: { posts: 5, perMs: 5_000 },
  history: false,
};

export const irc: Network<IrcSettings> = {
  name: "irc",
  title: "IRC",
  packages: ["irc-framework"],
  settings,
  account: (settings) => `${settings.nick}@${settings.host}:${portOf(settings)}`,
  secrets: ({ account, channels, password }) => [
    ...(password === undefined ? [] : [password]),
    ...(account === undefined ? [] : [account.password]),
    ...channels.flatMap((one) => (typeof one === "string" ? [] : [one.key])),
  ],
  rooms: ({ channels }) => channels.map(toName),
  toId,
  rename: (settings, suffix) => ({ ...settings, nick: `${settings.nick}-${suffix}` }),
  setup: [
    "Choose a server and a nick that is not in use; put them into `host` and `nick`.",
    "If the network has accounts, register one (usually `/msg NickServ REGISTER <password> <email>`) and put it into `account`: without one, anyone can take the nick.",
    "Put the channels into `channels`. In YAML, `#name` has to be quoted; `name` is enough.",
    "Peers in `allowPeers` are nicks, or `$a:<account>` where the server names the accounts of senders.",
  ],
  abilities: ABILITIES,
  async open(options, { signal, temporary = false }, tools) {
    const { default: library } = await loadPackage(irc, () => import("irc-framework"));
    if (signal.aborted) throw new DialError("stopped", "The connection was stopped.");
    const dial = (settings: IrcSettings) =>
      connect(new library.Client(toClientOptions(settings)), settings, signal, tools);
    return dial(options).catch((error: unknown) => {
      const isInUse = error instanceof DialError && error.status === NICK_IN_USE;
      if (!temporary || !isInUse) throw error;
      return dial({
        ...options,
        nick: `${options.nick}-${tools
          .uniqueId()
          .replace(/[^a-z0-9]/gi, "")
          .slice(0, 4)}`,
      });
    });
  },
};

/** Names that differ in case only are the same. */
function toId(name: string): string {
  return name.toLowerCase();
}

function toName(channel: IrcSettings["channels"][number]): string {
  return typeof channel === "string" ? channel : channel.name;
}

function isEncrypted({ host, port, tls }: IrcSettings): boolean {
  return tls ?? (port === undefined ? !isLoopback(host) : port === TLS_PORT);
}

function portOf(settings: IrcSettings): number {
  return settings.port ?? (isEncrypted(settings) ? TLS_PORT : PLAIN_PORT);
}

function toClientOptions(settings: IrcSettings): Record<string, unknown> {
  const { account, host, nick, password } = settings;
  return {
    host,
    port: portOf(settings),
    tls: isEncrypted(settings),
    nick,
    username: "agent",
    gecos: nick,
    password,
    // Without an account object the library would send the server's password as that of an account.
    account: account === undefined ? {} : { account: account.name, password: account.password },
    sasl_disconnect_on_fail: true,
    auto_reconnect: false,
    enable_echomessage: true,
    // No answer to CTCP.
    version: "",
  };
}

function connect(client: Client, options: IrcSettings, signal: AbortSignal, tools: ChannelTools): Promise<Channel> {
  return new Promise((resolve, reject) => {
    const waiting = new Map(options.channels.map((channel) => [toName(channel), channel]));
    let trouble: DialError | undefined;
    let settled = false;

    const settle = (): boolean => {
      if (settled) return false;
      settled = true;
      cancelTimer();
      signal.removeEventListener("abort", stop);
      return true;
    };
    const fail = (error: DialError): void => {
      if (!settle()) return;
      client.connection.end(undefined, true);
      reject(error);
    };
    const stop = (): void => fail(new DialError("stopped", "The connection was stopped."));
    const cancelTimer = tools.clock.after(CONNECT_TIMEOUT_MS, () => {
      const hint = isEncrypted(options) ? " If its port is not one for TLS, set `tls: false`." : "";
      fail(new DialError("timeout", `The server did not answer within ${CONNECT_TIMEOUT_MS / 1000} s.${hint}`));
    });
    const refuse = (message: string, status: number): void => fail(new DialError("refused", message, status));

    signal.addEventListener("abort", stop);
    client.on("registered", () => {
      if (client.network.supports("BOT")) client.raw("MODE", client.user.nick, `+${client.network.supports("BOT")}`);
      for (const [name, channel] of waiting)
        client.raw("JOIN", name, ...(typeof channel === "string" ? [] : [channel.key]));
    });
    client.on("join", ({ channel, hostname, ident, nick }) => {
      if (settled || !client.caseCompare(nick, client.user.nick)) return;
      for (const name of waiting.keys()) if (client.caseCompare(name, channel)) waiting.delete(name);
      if (waiting.size > 0) return;
      settle();
      resolve(createChannel(client, options, `${nick}!${ident}@${hostname}`, tools));
    });
    client.on("nick in use", () => refuse(`The nick ${options.nick} is in use.`, NICK_IN_USE));
    client.on("nick invalid", () => refuse(`The server does not accept the nick ${options.nick}.`, 400));
    client.on("sasl failed", () => refuse("The server did not accept the account.", 401));
    client.on("irc error", ({ channel, error, reason = error }) => {
      const about = channel === undefined ? "" : `${channel}: `;
      const redacted = irc.secrets(options).reduce((text, secret) => text.replaceAll(secret, "***"), reason);
      trouble = new DialError("refused", `The server refused: ${about}${redacted}`);
      if (channel !== undefined) fail(trouble);
    });
    client.on("socket close", (error) => {
      if (error instanceof Error) trouble = toDialError(error);
    });
    client.on("close", () => fail(trouble ?? new DialError("unreachable", "The server closed the connection.")));
    client.connect();
  });
}

function toDialError(error: Error & { readonly code?: string }): DialError {
  const certificate = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)/.test(error.code ?? "");
  return new DialError(certificate ? "certificate" : "unreachable", error.message || (error.code ?? "unreachable"));
}

/** A post that the server has been sent and has not confirmed. */
interface Unconfirmed {
  readonly target: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

function createChannel(client: Client, options: IrcSettings, mask: string, tools: ChannelTools): Channel {
  const self = { id: toId(client.user.nick), name: client.user.nick };
  const rooms = options.channels.map(toName);
  const unconfirmed = new Map<string, Unconfirmed>();
  let disconnected = false;
  const abilities = { ...ABILITIES, text: { max: maxTextBytes(client, rooms, mask), unit: "bytes" } } as const;

  const queue = createPostQueue(() => {
    for (const { reject } of unconfirmed.values())
      reject(new Error("The connection closed before the server answered."));
    unconfirmed.clear();
    if (disconnected) return undefined;
    return new Promise((resolve) => {
      const cancel = tools.clock.after(QUIT_TIMEOUT_MS, () => client.connection.end(undefined, true));
      client.on("close", () => {
        cancel();
        resolve();
      });
      client.quit("");
    });
  });

  client.on("privmsg", (event) => {
    const post = toPost(client, rooms, event, tools);
    if (post !== undefined) queue.push(post);
  });
  client.on("kick", ({ channel, kicked, message }) => {
    if (client.caseCompare(kicked, client.user.nick)) queue.end(ABNORMAL_CLOSURE, `Kicked from ${channel}: ${message}`);
  });
  client.on("close", () => {
    disconnected = true;
    queue.end(ABNORMAL_CLOSURE, "The server closed the connection.");
  });
  client.on("pong", ({ message }) => {
    unconfirmed.get(message)?.resolve();
    unconfirmed.delete(message);
  });
  client.on("irc error", ({ channel, nick, reason }) => {
    const about = channel ?? nick;
    if (about === undefined) return;
    for (const [token, { reject, target }] of unconfirmed) {
      if (!client.caseCompare(target, about)) continue;
      unconfirmed.delete(token);
      reject(new ChannelError("no-access", `The server refused the post to ${target}: ${reason ?? ""}`));
      return;
    }
  });

  return {
    abilities,
    self,
    posts: queue.posts,
    closed: queue.closed,
    close: queue.end,
    async post(draft) {
      if (queue.ended) throw new ChannelError("closed", "The channel has closed.");
      checkDraft(draft, abilities);
      if (!/^[^\s:,\p{Cc}][^\s,\p{Cc}]*$/u.test(draft.room))
        throw new ChannelError("no-access", "This is not a room of IRC.");
      const id = tools.uniqueId();
      // There are no receipts: servers work in order, so that an error would come before the answer to this ping.
      await new Promise<void>((resolve, reject) => {
        unconfirmed.set(id, { target: draft.room, resolve, reject });
        client.raw(`PRIVMSG ${draft.room} :${toLine(draft)}`);
        client.raw(`PING ${id}`);
      });
      return { id };
    },
  };
}

/** What is left of a line as others receive it, with a mention. */
function maxTextBytes(client: Client, rooms: readonly string[], mask: string): number {
  const nick = Math.max(Number(client.network.supports("NICKLEN")) || MAX_NICK_BYTES, client.user.nick.length);
  const target = Math.max(nick, ...rooms.map((name) => Buffer.byteLength(name)));
  const prefix = Buffer.byteLength(`:${mask} PRIVMSG  :`) + HOST_RESERVE_BYTES + target;
  return MAX_LINE_BYTES - "\r\n".length - prefix - nick - ": ".length;
}

function toPost(
  client: Client,
  rooms: readonly string[],
  event: IrcMessageEvent,
  tools: ChannelTools,
): Post | undefined {
  const { account, from_server: fromServer, nick, tags, target, time } = event;
  if (fromServer) return undefined;
  const text = fromLine(event.message);
  const own = client.user.nick;
  const self = client.caseCompare(nick, own);
  const direct = client.caseCompare(target, own) || (self && !rooms.some((name) => client.caseCompare(name, target)));
  const room = direct ? (self ? target : nick) : (rooms.find((name) => client.caseCompare(name, target)) ?? target);
  return {
    id: tags.msgid ?? tools.uniqueId(),
    room,
    direct,
    sender: {
      id: toId(account === undefined || self ? nick : `$a:${account}`),
      name: nick,
      bot: tags.bot !== undefined || tags["draft/bot"] !== undefined,
      self,
      verified: account !== undefined,
    },
    text,
    mentions: findMentions(text, own).map(toId),
    files: [],
    at: time ?? tools.clock.now(),
  };
}
