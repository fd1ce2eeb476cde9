/** Participants that know their network and nothing of A2A-Lite: they send and receive texts. */

import { client as createXmpp, type Element, xml } from "@xmpp/client";
import { connectAsync } from "mqtt";
import type { ChannelEntryOptions } from "../../src/features/chat/server/entries.ts";
import { closeLater } from "../support/lifecycle.ts";
import { openRawIrc } from "./raw-irc.ts";
import { hasServer, startMosquitto, startNgircd, startProsody } from "./servers.ts";

interface RawPost {
  readonly from: string;
  readonly text: string;
  readonly files: readonly string[];
}

export interface RawPeer {
  /** Posts of others, in order. */
  readonly posts: readonly RawPost[];
  say(text: string): Promise<void>;
  /** The next post of this participant (default: of any) that matches, among those that no earlier call has passed. */
  next(from: string | undefined, matches: RegExp): Promise<RawPost>;
  close(): Promise<void>;
}

export interface RawNetwork {
  readonly name: "irc" | "mqtt" | "xmpp";
  readonly isAvailable: boolean;
  readonly hasFiles: boolean;
  readonly keepsHistory: boolean;
  /** Starts a server that is stopped with the test. */
  start(): Promise<RawRoom>;
}

export interface RawRoom {
  readonly room: string;
  /** Id of a participant, as `allowPeers` has it. */
  idOf(name: string): string;
  settings(name: string): Pick<ChannelEntryOptions, "irc" | "mqtt" | "xmpp">;
  join(name: string): Promise<RawPeer>;
}

class Inbox {
  readonly posts: RawPost[] = [];
  #at = 0;
  #wake = (): void => {};

  push(post: RawPost): void {
    this.posts.push(post);
    this.#wake();
  }
  async next(from: string | undefined, matches: RegExp): Promise<RawPost> {
    for (;;) {
      const found = this.posts.findIndex(
        (post, index) => index >= this.#at && (from ?? post.from) === post.from && matches.test(post.text),
      );
      if (found >= 0) {
        this.#at = found + 1;
        return this.posts[found] as RawPost;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function toPeer(inbox: Inbox, say: RawPeer["say"], close: RawPeer["close"]): RawPeer {
  closeLater(close);
  return { posts: inbox.posts, say, close, next: (from, matches) => inbox.next(from, matches) };
}

const irc: RawNetwork = {
  name: "irc",
  isAvailable: hasServer("ngircd"),
  hasFiles: false,
  keepsHistory: false,
  async start() {
    const server = await startNgircd();
    closeLater(() => server.close());
    const room = "#work";
    return {
      room,
      idOf: (name) => name,
      settings: (nick) => ({ irc: { host: "127.0.0.1", port: server.port, tls: false, nick, channels: [room] } }),
      async join(nick) {
        const inbox = new Inbox();
        const raw = await openRawIrc(server.port, {
          nick,
          channel: room,
          onLine(line) {
            const [, from = "", target, text = ""] = /^:([^!]+)!\S+ PRIVMSG (\S+) :(.*)$/.exec(line) ?? [];
            if (target === room) inbox.push({ from, text, files: [] });
          },
        });
        return toPeer(
          inbox,
          async (text) => raw.send(`PRIVMSG ${room} :${text}`),
          async () => raw.close(),
        );
      },
    };
  },
};

const mqtt: RawNetwork = {
  name: "mqtt",
  isAvailable: hasServer("mosquitto"),
  hasFiles: false,
  keepsHistory: true,
  async start() {
    const server = await startMosquitto();
    closeLater(() => server.close());
    const url = `mqtt://127.0.0.1:${server.port}`;
    const room = "office/work";
    return {
      room,
      idOf: (name) => name,
      settings: (name) => ({ mqtt: { url, name, rooms: [room] } }),
      async join(name) {
        const inbox = new Inbox();
        const client = await connectAsync(url, { reconnectPeriod: 0 });
        client.on("message", (topic, payload) => {
          const from = topic.slice(room.length + 1);
          if (from !== name) inbox.push({ from, text: payload.toString(), files: [] });
        });
        await client.subscribeAsync(`${room}/+`, { qos: 1 });
        return toPeer(
          inbox,
          async (text) => void (await client.publishAsync(`${room}/${name}`, text, { qos: 1 })),
          () => client.endAsync(true),
        );
      },
    };
  },
};

const PASSWORD = "account-password-1";
const NS_MUC = "http://jabber.org/protocol/muc";

const xmpp: RawNetwork = {
  name: "xmpp",
  isAvailable: hasServer("prosody"),
  hasFiles: true,
  keepsHistory: true,
  async start() {
    const server = await startProsody({ agent: PASSWORD, person: PASSWORD, helper: PASSWORD });
    closeLater(() => server.close());
    const service = `xmpp://127.0.0.1:${server.port}`;
    const room = `work@${server.muc}`;
    return {
      room,
      idOf: (name) => `${name}@localhost`,
      settings: (name) => ({ xmpp: { service, jid: `${name}@localhost`, password: PASSWORD, rooms: [room] } }),
      async join(name) {
        const inbox = new Inbox();
        const client = createXmpp({ service, domain: "localhost", username: name, password: PASSWORD });
        client.reconnect.stop();
        client.on("error", () => {});
        let joined = (): void => {};
        const inRoom = new Promise<void>((resolve) => {
          joined = resolve;
        });
        /** Who creates a room accepts its configuration, as people's programs do; before that nobody else can join. */
        const unlock = async (presence: Element): Promise<void> => {
          const codes = presence.getChild("x", `${NS_MUC}#user`)?.getChildren("status") ?? [];
          if (!codes.some(({ attrs }) => attrs.code === "201")) return;
          const form = xml("query", { xmlns: `${NS_MUC}#owner` }, xml("x", { xmlns: "jabber:x:data", type: "submit" }));
          await client.iqCaller.request(xml("iq", { type: "set", to: room }, form));
        };
        client.on("stanza", (stanza) => {
          const from = stanza.attrs.from?.split("/")[1] ?? "";
          if (stanza.is("presence") && from === name) void unlock(stanza).then(joined);
          const text = stanza.getChildText("body");
          if (!stanza.is("message") || text === null || from === name) return;
          const files = stanza.getChildren("x", "jabber:x:oob").map((one) => one.getChildText("url") ?? "");
          inbox.push({ from, text, files });
        });
        await client.start();
        const history = xml("history", { maxstanzas: "0" });
        await client.send(xml("presence", { to: `${room}/${name}` }, xml("x", { xmlns: NS_MUC }, history)));
        await inRoom;
        return toPeer(
          inbox,
          (text) => client.send(xml("message", { type: "groupchat", to: room }, xml("body", {}, text))),
          async () => void (await client.stop()),
        );
      },
    };
  },
};

export const RAW_NETWORKS: readonly RawNetwork[] = [irc, mqtt, xmpp];
