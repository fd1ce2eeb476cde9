import { Connection } from "../client/connection.ts";
import { type LoadResult, startTasks } from "../client/load.ts";
import { message, RequestTemplate } from "../client/requests.ts";
import { BodySink } from "../client/sinks.ts";
import type { Contestant } from "../contestants/launch.ts";
import { costOf, inTurn, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";

/** Tasks that grow in parallel, so that a window has enough messages to measure. */
const tasks = 8;
const window = 100;
const early = 10;
const stores = ["memory", "sqlite"] as const;
const configuration = { historyLength: 0 };

function labelOf(end: "10th" | "5,000th", store: (typeof stores)[number]): string {
  return `messages from the ${end}, ${store}`;
}

export const longTask: Scenario = {
  name: "long-task",
  title: "one more message to a task with 10 and with 5,000 messages",
  setup: "Dragoman beside itself, in turn on one warm server; the answers leave the history out.",
  targets: stores.map(
    (store): Target => ({
      measure: "cpuMicros",
      of: labelOf("5,000th", store),
      times: labelOf("10th", store),
      atMost: 1.2,
    }),
  ),
  async run(context, record) {
    for (const store of stores) {
      await withContestant(
        "dragoman",
        { agent: "ask", store: context.workspace.newStore(store) },
        async (contestant) => {
          // The old tasks grow first, so that young and old ones are measured in turn on the same warm server.
          const old = await startTalks(contestant);
          await talk(old, context.size(5_000, 200));
          await inTurn(context, record, {
            [labelOf("10th", store)]: async () => {
              const young = await startTalks(contestant);
              await talk(young, early - 1);
              const cost = await costOf(contestant, () => talk(young, window));
              closeAll(young);
              return cost;
            },
            [labelOf("5,000th", store)]: () => costOf(contestant, () => talk(old, window)),
          });
          closeAll(old);
        },
      );
    }
  },
};

interface Speaker {
  connection: Connection;
  say(messages: number): Promise<void>;
}

/** Sends this many more messages to every task. */
async function talk(speakers: readonly Speaker[], messages: number): Promise<LoadResult> {
  const start = performance.now();
  await Promise.all(speakers.map((speaker) => speaker.say(messages)));
  const completed = messages * speakers.length;
  return { completed, frames: completed, seconds: (performance.now() - start) / 1000 };
}

async function startTalks(contestant: Contestant): Promise<Speaker[]> {
  const started = await startTasks(contestant, tasks, configuration);
  return Promise.all(started.map(({ id, contextId }) => startTalk(contestant, { taskId: id, contextId })));
}

function closeAll(speakers: readonly Speaker[]): void {
  for (const { connection } of speakers) connection.close();
}

async function startTalk(contestant: Contestant, ids: object): Promise<Speaker> {
  const connection = await Connection.open(contestant.port);
  const template = new RequestTemplate(contestant, message("hello", { ids, configuration }));
  const sink = new BodySink();
  const say = async (messages: number) => {
    for (let sent = 0; sent < messages; sent++) {
      await connection.exchange(template.next(), sink);
      const body = sink.take();
      if (!body.includes("TASK_STATE_INPUT_REQUIRED")) {
        throw new Error(`unexpected answer: ${body.toString().slice(0, 500)}`);
      }
    }
  };
  return { connection, say };
}
