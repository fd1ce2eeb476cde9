import { runLinkLoad } from "../client/link-load.ts";
import { LinkPlatform } from "../client/link-platform.ts";
import { compare, costOf, type Entry, type Scenario } from "../scenario.ts";

/**
 * The last frame of a response is delayed by 300 ms, as the platform requires, so one conversation handles at most
 * three messages a second. With this many conversations, the delay does not limit the measured throughput.
 */
const conversations = 4_000;

const entriesOn = (url: string): Entry[] => [
  { label: "dragoman memory", contestant: "dragoman", agent: "echo", store: "memory", link: { url } },
  { label: "bare ws, same frames", contestant: "bare-link", agent: "echo", store: "memory", link: { url } },
  {
    label: "bare ws, one frame",
    contestant: "bare-link",
    agent: "echo",
    store: "memory",
    link: { url, onlyFinal: true },
  },
];

export const linkFrames: Scenario = {
  name: "link-frames",
  title: `messages of Xiaoyi over one link, ${conversations.toLocaleString("en")} conversations`,
  targets: [],
  async run(context, record) {
    const platform = await LinkPlatform.open();
    try {
      const count = context.size(conversations, 200);
      await compare(context, record, entriesOn(platform.url), async (contestant) => {
        await platform.linked();
        let framesEach = 0;
        const load = async (seconds: number) => {
          const result = await runLinkLoad(platform, count, seconds);
          framesEach = result.frames / result.completed;
          return result;
        };
        await load(context.size(2, 0.4));
        const cost = await costOf(contestant, () => load(context.size(3, 0.6)));
        return { ...cost, framesEach, framesPerSecond: cost.perSecond * framesEach };
      });
    } finally {
      platform.close();
    }
  },
};
