import { LinkPlatform } from "../client/link-platform.ts";
import type { LoadResult } from "../client/load.ts";
import type { Contestant } from "../contestants/launch.ts";
import { compare, costOf, type Entry, type Scenario } from "../scenario.ts";

/**
 * The last frame of a response is delayed by 300 ms, as the platform requires, so one conversation handles at most
 * three messages a second. With this many conversations, the delay does not limit the throughput.
 */
const conversations = 4_000;

export const linkFrames: Scenario = {
  name: "link-frames",
  title: `messages of Xiaoyi over one link, ${conversations.toLocaleString("en")} conversations`,
  setup:
    "The agent dials a platform in the measuring process, which counts frames until `final`. Bare ws parses a message and " +
    "answers it with the same four frames, or with one, from a map of conversations: no log, no repetition after a broken link.",
  targets: [],
  run: (context, record) =>
    withPlatform((platform) => {
      const link = { url: platform.url };
      const bare = { contestant: "bare-link", agent: "echo", store: "memory" } as const;
      const entries: Entry[] = [
        { ...bare, label: "bare ws, one frame", link: { ...link, onlyFinal: true } },
        { ...bare, label: "bare ws, same frames", link },
        { ...bare, label: "dragoman memory", contestant: "dragoman", link },
      ];
      return compare(context, record, entries, async (contestant) => {
        await platform.linked();
        const count = context.size(conversations, 200);
        await converse(platform, count, context.size(2, 1));
        return costOf(contestant, () => converse(platform, count, context.size(4, 1)));
      });
    }),
};

let runs = 0;

/** Runs conversations, each of which sends its next message once the previous one is answered. */
async function converse(platform: LinkPlatform, sessions: number, messagesEach: number): Promise<LoadResult> {
  const start = performance.now();
  const run = ++runs;
  let frames = 0;
  await Promise.all(
    Array.from({ length: sessions }, async (_, index) => {
      const session = `s${index}`;
      for (let turn = 0; turn < messagesEach; turn++) {
        const task = `${session}-${run}&${turn}`;
        const received = await platform.say(session, task, `hello ${task}`);
        frames += received;
      }
    }),
  );
  return { completed: sessions * messagesEach, frames, seconds: (performance.now() - start) / 1000 };
}

const openConversations = 5_000;

export const linkSessions: Scenario = {
  name: "link-sessions",
  title: `${openConversations.toLocaleString("en")} conversations of Xiaoyi over one link: each with a task under way, then ended`,
  setup: "As link-frames; bare ws has nothing but the map entry of a conversation.",
  targets: [],
  run: (context, record) =>
    withPlatform((platform) => {
      const ours = { contestant: "dragoman", agent: "linger", store: "memory", link: { url: platform.url } } as const;
      const entries: Entry[] = [
        { ...ours, label: "bare ws", contestant: "bare-link" },
        { ...ours, label: "dragoman memory" },
        { ...ours, label: "dragoman SQLite", store: "sqlite" },
      ];
      const count = context.size(openConversations, 200);
      const rounds = Math.min(context.rounds, 3);
      return compare({ ...context, rounds }, record, entries, async (contestant) => {
        await platform.linked();
        return measureSessions(contestant, platform, count);
      });
    }),
};

async function withPlatform(use: (platform: LinkPlatform) => Promise<void>): Promise<void> {
  const platform = await LinkPlatform.open();
  try {
    await use(platform);
  } finally {
    platform.close();
  }
}

async function measureSessions(contestant: Contestant, platform: LinkPlatform, count: number) {
  // The first conversations also allocate compiled code and pools that persist: they run before the measurement.
  const early = await open(platform, "early", Math.ceil(count / 10));
  await end(platform, early);
  const before = await contestant.memory();
  const sessions = await open(platform, "session", count);
  const during = await contestant.memory();
  await end(platform, sessions);
  const after = await contestant.memory();
  return {
    openRssKilobytes: (during.rss - before.rss) / 1024 / count,
    openHeapKilobytes: (during.heapUsed - before.heapUsed) / 1024 / count,
    endedHeapKilobytes: (after.heapUsed - before.heapUsed) / 1024 / count,
  };
}

async function open(platform: LinkPlatform, prefix: string, count: number): Promise<string[]> {
  const sessions = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  await Promise.all(sessions.map((session) => platform.begin(session, `${session}&1`, `hello ${session}&1`)));
  return sessions;
}

async function end(platform: LinkPlatform, sessions: readonly string[]): Promise<void> {
  await Promise.all(sessions.map((session) => platform.cancel(session, `${session}&1`)));
}
