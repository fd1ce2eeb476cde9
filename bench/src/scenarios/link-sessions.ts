import { LinkPlatform } from "../client/link-platform.ts";
import type { Contestant } from "../contestants/launch.ts";
import { compare, type Entry, type Scenario } from "../scenario.ts";

const conversations = 5_000;

const entriesOn = (url: string): Entry[] => [
  { label: "dragoman memory", contestant: "dragoman", agent: "linger", store: "memory", link: { url } },
  { label: "dragoman SQLite", contestant: "dragoman", agent: "linger", store: "sqlite", link: { url } },
  { label: "bare ws", contestant: "bare-link", agent: "linger", store: "memory", link: { url } },
];

export const linkSessions: Scenario = {
  name: "link-sessions",
  title: `${conversations.toLocaleString("en")} conversations of Xiaoyi over one link: each with a task under way, then ended`,
  targets: [],
  async run(context, record) {
    const platform = await LinkPlatform.open();
    try {
      const count = context.size(conversations, 200);
      const rounds = Math.min(context.rounds, 3);
      await compare({ ...context, rounds }, record, entriesOn(platform.url), async (contestant) => {
        await platform.linked();
        return measureSessions(contestant, platform, count);
      });
    } finally {
      platform.close();
    }
  },
};

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
