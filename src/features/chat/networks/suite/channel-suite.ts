/** What every channel does, whatever its network: each adapter passes this suite against a real or simulated server. */

import { inspect } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { systemClock } from "../../../../core/server/clock-and-ids.ts";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type Participant,
  type Post,
  type PostDraft,
} from "../../../../core/wire/channel.ts";
import { DialError } from "../../../../core/wire/dial-error.ts";
import type { ChannelTools } from "../network.ts";

/** The other participant: another channel, or a person played by the simulator where bots do not see each other. */
export type Peer = Pick<Channel, "self" | "posts" | "post" | "edit"> & Partial<Pick<Channel, "acknowledge" | "close">>;

/** One server with one room, and two participants who may join it. */
export interface ChannelStage {
  readonly room: string;
  /** Opens the channel under test. */
  join(options: ChannelOptions): Promise<Channel>;
  /** Once per stage. It is in the room when this resolves. */
  joinPeer(): Promise<Peer>;
  /** Room in which `from` writes to `to` alone; absent: the network has none between these two. */
  directRoom?(from: Participant, to: Participant): string;
  /** How one participant appears to the other; absent: as it appears to itself. */
  appearance?(of: Participant, to: Participant): Participant;
  /** Absent: the network does not authenticate. */
  readonly intruder?: { readonly secret: string; join(options: ChannelOptions): Promise<Channel> };
  /** Well-formed, but this participant cannot post there. */
  readonly foreignRoom?: string;
  /** The server refuses the next post as one too many. */
  limitRate?(): void;
  /** The server goes away without a word, as if it had crashed. */
  stop(): Promise<void>;
  /** Releases everything; the server may have stopped already. */
  close(): Promise<void>;
}

export interface ChannelContract {
  /** Compared with the abilities of the channel; they decide which tests there are. */
  readonly abilities: Pick<ChannelAbilities, "edits" | "history" | "lines" | "replies" | "seesBots"> & {
    readonly files: boolean;
  };
  /** Which parts of the stage there are. */
  readonly has: {
    readonly direct: boolean;
    readonly credentials: boolean;
    readonly foreignRoom: boolean;
    readonly rateLimit: boolean;
    /** A post that is repeated under its key can be recognised: by the network, or by those who get it. Default: false. */
    readonly keys?: boolean;
    /** Default: false. */
    readonly deletes?: boolean;
    /** Posts that were not acknowledged come again. Default: false. */
    readonly acknowledgements?: boolean;
    /** False: there is none that could go away. Default: true. */
    readonly server?: boolean;
  };
  /** A new one for each test. */
  stage(): Promise<ChannelStage>;
}

let ids = 0;
export const SUITE_TOOLS: ChannelTools = {
  clock: systemClock,
  log: SILENT_LOG,
  uniqueId: () => `unique-${++ids}`,
};

const UNICODE = 'Grüße, 世界! 👩‍👩‍👧 e\u0301 \u{1f1e8}\u{1f1f3} ﷽ <b>&amp;</b> *x* _y_ `z` \\ "q" a@b.example %20 {0}';
const BYTES = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 31 + (index >> 8)) % 256);

export function describeChannel(title: string, contract: ChannelContract): void {
  describe(`the contract of channels: ${title}`, () => {
    const cleanups: (() => unknown)[] = [];

    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    });

    async function openStage(): Promise<ChannelStage> {
      const stage = await contract.stage();
      cleanups.push(() => stage.close());
      return stage;
    }

    async function join(stage: ChannelStage, options: Partial<ChannelOptions> = {}): Promise<Opened> {
      const channel = await stage.join(toOptions(options));
      cleanups.push(async () => {
        channel.close();
        await channel.closed;
      });
      return { channel, inbox: readPosts(channel) };
    }

    /** Both in the room; `draft` addresses the peer, so that it sees the post whatever the network shows to bots. */
    async function meet() {
      const stage = await openStage();
      const peer = await stage.joinPeer();
      cleanups.push(() => peer.close?.());
      const peerInbox = readPosts(peer);
      const { channel, inbox } = await join(stage);
      const appearance = stage.appearance?.bind(stage) ?? ((of: Participant) => of);
      const { room } = stage;
      return {
        stage,
        channel,
        inbox,
        peer,
        peerInbox,
        seenSelf: appearance(channel.self, peer.self),
        draft: (text: string, more: Partial<PostDraft> = {}): PostDraft => ({
          room,
          text,
          mentions: [appearance(peer.self, channel.self)],
          ...more,
        }),
        peerDraft: (text: string, more: Partial<PostDraft> = {}): PostDraft => ({
          room,
          text,
          mentions: [appearance(channel.self, peer.self)],
          ...more,
        }),
      };
    }

    it("states what the network can do", async () => {
      const { abilities, edit } = (await join(await openStage())).channel;
      const { files, ...expected } = contract.abilities;
      expect(abilities).toMatchObject(expected);
      expect(abilities.maxFileBytes > 0).toBe(files);
      expect(edit !== undefined).toBe(abilities.edits);
      expect(abilities.text.max).toBeGreaterThan(100);
      expect(abilities.rate.posts).toBeGreaterThan(0);
      expect(abilities.rate.perMs).toBeGreaterThan(0);
    });

    it("delivers a post with id, sender, room and mention", async () => {
      const { channel, draft, peer, peerInbox, seenSelf, stage } = await meet();
      const before = systemClock.now();
      const first = await channel.post(draft("first post"));
      const second = await channel.post(draft("second post"));
      const received = [await peerInbox.next(withText("first post")), await peerInbox.next(withText("second post"))];
      for (const post of received) {
        expect(post.room).toBe(stage.room);
        expect(post.direct).toBe(false);
        expect(post.sender).toMatchObject({ id: seenSelf.id, name: seenSelf.name, self: false });
        expect(post.mentions).toContain(peer.self.id);
        expect(post.edits).toBeUndefined();
        expect(post.files).toEqual([]);
        // Some networks give whole seconds, by a clock of their own.
        expect(Math.abs(post.at - before)).toBeLessThan(60_000);
      }
      expect(received[0]?.id).not.toBe(received[1]?.id);
      expect(first.id).not.toBe(second.id);
      if (channel.abilities.replies || channel.abilities.edits) {
        expect(received.map(({ id }) => id)).toEqual([first.id, second.id]);
      }
    });

    it("receives what others post", async () => {
      const { channel, inbox, peer, peerDraft } = await meet();
      await peer.post(peerDraft("hello there"));
      const post = await inbox.next(withText("hello there"));
      expect(post.sender.self).toBe(false);
      expect(post.mentions).toContain(channel.self.id);
      expect(post.room).toBe(peerDraft("").room);
    });

    it("marks own posts or does not deliver them", async () => {
      const { channel, draft, inbox, peer, peerDraft } = await meet();
      await channel.post(draft("from me"));
      await peer.post(peerDraft("from the other"));
      await inbox.next(withText("from the other"));
      for (const { sender, text } of inbox.seen) expect(sender.self).toBe(!text.includes("from the other"));
    });

    it("keeps the order of posts", async () => {
      const { channel, draft, peerInbox } = await meet();
      const texts = ["one of three", "two of three", "three of three"];
      for (const text of texts) await channel.post(draft(text));
      await peerInbox.next(withText("three of three"));
      expect(peerInbox.seen.map(({ text }) => texts.find((one) => text.includes(one)))).toEqual(texts);
    });

    it("carries any character", async () => {
      const { channel, draft, inbox, peer, peerDraft, peerInbox } = await meet();
      await channel.post(draft(UNICODE));
      expect((await peerInbox.next()).text).toContain(UNICODE);
      await peer.post(peerDraft(UNICODE));
      expect((await inbox.next(({ sender }) => !sender.self)).text).toContain(UNICODE);
    });

    testIf(contract.abilities.lines)("carries several lines", async () => {
      const { channel, draft, peerInbox } = await meet();
      const text = "[A2A:task id=t1]\nfirst\n\n  second\n```json\n{}\n```";
      await channel.post(draft(text));
      expect((await peerInbox.next()).text).toContain(text);
    });

    testIf(!contract.abilities.lines)("refuses a second line before anything is sent", async () => {
      const { channel, draft, peerInbox } = await meet();
      await expectRefusal(channel.post(draft("one\ntwo")));
      await expectRefusal(channel.post(draft("one\rtwo")));
      await channel.post(draft("afterwards"));
      expect((await peerInbox.next()).text).toContain("afterwards");
    });

    it("carries a text of exactly the maximum, with a mention, and refuses one more before anything is sent", async () => {
      const { channel, draft, peerInbox } = await meet();
      const { max } = channel.abilities.text;
      const longest = "abcdefghi "
        .repeat(Math.ceil(max / 10))
        .slice(0, max - 1)
        .concat("!");
      await expectRefusal(channel.post(draft(`${longest}x`)));
      await channel.post(draft(longest));
      expect((await peerInbox.next()).text).toContain(longest);
    });

    it("measures the maximum in its unit", async () => {
      const { channel, draft, peerInbox } = await meet();
      const { max, unit } = channel.abilities.text;
      const longest = "界".repeat(unit === "bytes" ? Math.floor(max / 3) : max);
      await expectRefusal(channel.post(draft(`${longest}界`)));
      await channel.post(draft(longest));
      expect((await peerInbox.next()).text).toContain(longest);
    });

    testIf(contract.has.direct)("carries direct messages", async () => {
      const { channel, inbox, peer, peerInbox, stage } = await meet();
      await channel.post({ room: stage.directRoom?.(channel.self, peer.self) ?? "", text: "between us" });
      const received = await peerInbox.next(withText("between us"));
      expect(received).toMatchObject({ direct: true, sender: { self: false } });
      await peer.post({ room: received.room, text: "understood" });
      expect(await inbox.next(withText("understood"))).toMatchObject({ direct: true, sender: { self: false } });
    });

    testIf(contract.abilities.files)("carries files byte by byte", async () => {
      const { channel, draft, peerInbox } = await meet();
      const files = [{ name: "report.bin", mediaType: "application/octet-stream", bytes: BYTES }];
      await channel.post(draft("with a file", { files }));
      const file = (await peerInbox.next(({ files }) => files.length > 0)).files[0];
      expect(file?.name).toBe("report.bin");
      const bytes = await file?.read(BYTES.length);
      expect(Buffer.compare(bytes ?? new Uint8Array(), BYTES)).toBe(0);
      await expect(file?.read(BYTES.length - 1)).rejects.toThrow();
    });

    testIf(contract.abilities.files)("refuses a file above the maximum before anything is sent", async () => {
      const { channel, draft, peerInbox } = await meet();
      const bytes = new Uint8Array(channel.abilities.maxFileBytes + 1);
      const files = [{ name: "large.bin", mediaType: "application/octet-stream", bytes }];
      await expectRefusal(channel.post(draft("with a large file", { files })));
      await channel.post(draft("afterwards"));
      expect((await peerInbox.next()).text).toContain("afterwards");
    });

    testIf(!contract.abilities.files)("refuses files", async () => {
      const { channel, draft } = await meet();
      const files = [{ name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("a") }];
      await expectRefusal(channel.post(draft("with a file", { files })));
    });

    testIf(contract.abilities.edits)("edits a post", async () => {
      const { channel, draft, peerInbox } = await meet();
      const { id } = await channel.post(draft("working 10%"));
      await channel.edit?.(id, draft("working 90%"));
      const edited = await peerInbox.next(withText("working 90%"));
      expect(edited.edits).toBe(id);
      const tooLong = "x".repeat(channel.abilities.text.max + 1);
      await expectRefusal(channel.edit?.(id, draft(tooLong)) ?? Promise.resolve());
    });

    testIf(contract.abilities.replies)("names the post that a reply answers", async () => {
      const { channel, draft, inbox, peer, peerDraft, peerInbox } = await meet();
      await channel.post(draft("a question"));
      const question = await peerInbox.next(withText("a question"));
      await peer.post(peerDraft("an answer", { replyTo: question.id }));
      const answer = await inbox.next(withText("an answer"));
      expect(answer.replyTo).toBe(question.id);
      await channel.post(draft("thanks", { replyTo: answer.id }));
      expect((await peerInbox.next(withText("thanks"))).replyTo).toBe(answer.id);
    });

    testIf(contract.abilities.history)("delivers what was posted while it was away", async () => {
      const { channel, inbox, peer, peerDraft, stage } = await meet();
      await peer.post(peerDraft("while here"));
      const { cursor } = await inbox.next(withText("while here"));
      channel.close();
      await channel.closed;
      await peer.post(peerDraft("while away"));
      const cursors = new Map(cursor === undefined ? [] : [[stage.room, cursor]]);
      const again = await join(stage, { cursors });
      await peer.post(peerDraft("back again"));
      await again.inbox.next(withText("back again"));
      const texts = again.inbox.seen.map(({ text }) => text);
      expect(texts.findIndex((text) => text.includes("while away"))).toBeGreaterThanOrEqual(0);
    });

    testIf(contract.has.deletes === true)("deletes its own posts, and no others", async () => {
      const { channel, draft, inbox, peer, peerDraft, stage } = await meet();
      const { id } = await channel.post(draft("soon gone"));
      await channel.delete?.(id, stage.room);
      await peer.post(peerDraft("to stay"));
      const other = await inbox.next(withText("to stay"));
      await expect(channel.delete?.(other.id, stage.room)).rejects.toBeInstanceOf(ChannelError);
    });

    testIf(contract.has.keys === true)("posts a draft again under the id that its key had", async () => {
      const { channel, draft, peerInbox } = await meet();
      const first = await channel.post(draft("once", { key: "task-1/7" }));
      const second = await channel.post(draft("once", { key: "task-1/7" }));
      await channel.post(draft("then", { key: "task-1/8" }));
      await peerInbox.next(withText("then"));
      const ids = peerInbox.seen.filter(withText("once")).map(({ id }) => id);
      expect([second.id, ...new Set(ids)]).toEqual([first.id, ids[0]]);
    });

    testIf(contract.has.acknowledgements === true)("receives posts again that were not acknowledged", async () => {
      const { channel, peer, peerDraft, stage } = await meet();
      const { posts } = channel;
      const inbox = readPosts({ posts });
      await peer.post(peerDraft("handled"));
      channel.acknowledge?.(await inbox.next(withText("handled")));
      await peer.post(peerDraft("in hand"));
      await inbox.next(withText("in hand"));
      channel.close();
      await channel.closed;
      const again = await join(stage);
      await peer.post(peerDraft("back again"));
      await again.inbox.next(withText("back again"));
      expect(again.inbox.seen.map(({ text }) => /handled|in hand|back again/.exec(text)?.[0])).toEqual([
        "in hand",
        "back again",
      ]);
    });

    testIf(contract.has.rateLimit)("says when the network limits the rate", async () => {
      const { channel, draft, stage } = await meet();
      stage.limitRate?.();
      const error = await channel.post(draft("one too many")).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ChannelError);
      expect(error).toMatchObject({ code: "rate-limited", retryAfterMs: expect.any(Number) });
    });

    testIf(contract.has.foreignRoom)("refuses a post to a room that it has no access to", async () => {
      const { channel, draft, stage } = await meet();
      const { foreignRoom: room = "" } = stage;
      const error = await channel.post(draft("hello", { room })).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ChannelError);
      expect(["no-access", "refused"]).toContain((error as ChannelError).code);
    });

    it("ends when it is closed", async () => {
      const { channel, draft, inbox } = await meet();
      channel.close(1000, "done");
      channel.close(1011, "again");
      expect(await channel.closed).toEqual({ code: 1000, reason: "done" });
      await inbox.end();
      await expectClosed(channel.post(draft("too late")));
    });

    testIf(contract.has.server !== false)("closes when the server goes away", async () => {
      const { channel, draft, inbox, stage } = await meet();
      await stage.stop();
      const { code, reason } = await channel.closed;
      expect(code).toBeGreaterThanOrEqual(1000);
      expect(reason).toEqual(expect.any(String));
      await inbox.end();
      await expectClosed(channel.post(draft("too late")));
    });

    testIf(contract.has.server !== false)("is not opened if the server is away", async () => {
      const stage = await openStage();
      await stage.stop();
      await expect(stage.join(toOptions())).rejects.toBeInstanceOf(DialError);
    });

    testIf(contract.has.credentials)("is not opened with wrong credentials, which no error shows", async () => {
      const { intruder } = await openStage();
      const error = await intruder?.join(toOptions()).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DialError);
      expect((error as DialError).failure).toBe("refused");
      expect([undefined, 401, 403]).toContain((error as DialError).status);
      expect(inspect(error, { depth: 8, showHidden: true })).not.toContain(intruder?.secret);
    });

    it("is not opened once it is aborted", async () => {
      const stage = await openStage();
      const stopped = { name: "DialError", failure: "stopped" };
      await expect(stage.join(toOptions({ signal: AbortSignal.abort() }))).rejects.toMatchObject(stopped);
      const controller = new AbortController();
      const opening = stage.join(toOptions({ signal: controller.signal }));
      controller.abort();
      await expect(opening).rejects.toMatchObject(stopped);
    });
  });
}

/** A test that the network has no part of does not exist, rather than being skipped. */
function testIf(condition: boolean): (name: string, run: () => Promise<void>) => void {
  return condition ? it : () => {};
}

interface Opened {
  readonly channel: Channel;
  readonly inbox: PostReader;
}

export interface PostReader {
  /** All that was read so far. */
  readonly seen: readonly Post[];
  /** The next post, or the next one that matches. */
  next(matches?: (post: Post) => boolean): Promise<Post>;
  /** Resolves when the channel has no more posts. */
  end(): Promise<void>;
}

/** Acknowledges what it reads. */
export function readPosts(channel: Pick<Channel, "posts" | "acknowledge">): PostReader {
  const iterator = channel.posts[Symbol.asyncIterator]();
  const seen: Post[] = [];
  return {
    seen,
    async next(matches = () => true) {
      for (;;) {
        const { done, value } = await iterator.next();
        if (done === true) throw new Error("The channel has closed.");
        channel.acknowledge?.(value);
        seen.push(value);
        if (matches(value)) return value;
      }
    },
    async end() {
      while ((await iterator.next()).done !== true) {}
    },
  };
}

export function withText(text: string): (post: Post) => boolean {
  return (post) => post.text.includes(text);
}

function toOptions({ cursors = new Map(), signal = new AbortController().signal }: Partial<ChannelOptions> = {}) {
  return { cursors, signal } satisfies ChannelOptions;
}

async function expectRefusal(attempt: Promise<unknown>): Promise<void> {
  await expect(attempt).rejects.toBeInstanceOf(ChannelError);
  await expect(attempt).rejects.toMatchObject({ code: "refused" });
}

async function expectClosed(attempt: Promise<unknown>): Promise<void> {
  await expect(attempt).rejects.toBeInstanceOf(ChannelError);
  await expect(attempt).rejects.toMatchObject({ code: "closed" });
}
