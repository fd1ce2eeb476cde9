import { Connection } from "../client/connection.ts";
import { call } from "../client/load.ts";
import { MessageTemplate } from "../client/requests.ts";
import { BodySink } from "../client/sinks.ts";
import type { Contestant } from "../contestants/launch.ts";
import { type Context, costOf, type Recorder, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";

/** Tasks that grow in parallel, so that a window has enough messages to measure. */
const tasks = 8;
const window = 100;
const early = 10;
const stores = ["memory", "sqlite"] as const;
const configuration = { historyLength: 0 };

type Store = (typeof stores)[number];

function labelOf(end: "10th" | "5,000th", store: Store): string {
  return `messages from the ${end}, ${store}`;
}

export const longTask: Scenario = {
  name: "long-task",
  title: "one more message to a task with 10 and with 5,000 messages",
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
      await withContestant("dragoman", { agent: "ask", store: context.workspace.newStore(store) }, (contestant) =>
        measureTasks(contestant, context, record, store),
      );
    }
  },
};

async function measureTasks(contestant: Contestant, context: Context, record: Recorder, store: Store): Promise<void> {
  // The old tasks grow first, so that young and old ones are measured in turn on the same warm server.
  const old = await startTasks(contestant);
  await talk(old, context.size(5_000, 300));
  for (let round = -1; round < context.rounds; round++) {
    const young = await startTasks(contestant);
    await talk(young, early - 1);
    const youngCost = await costOf(contestant, () => talk(young, window));
    const oldCost = await costOf(contestant, () => talk(old, window));
    closeAll(young);
    // Round -1 is a warm-up.
    if (round < 0) continue;
    record.add(labelOf("10th", store), youngCost);
    record.add(labelOf("5,000th", store), oldCost);
  }
  closeAll(old);
}

interface Speaker {
  connection: Connection;
  say(messages: number): Promise<void>;
}

/** Sends this many more messages to every task; returns their total number and the elapsed time. */
async function talk(speakers: readonly Speaker[], messages: number): Promise<{ completed: number; seconds: number }> {
  const start = performance.now();
  await Promise.all(speakers.map((speaker) => speaker.say(messages)));
  return { completed: messages * speakers.length, seconds: (performance.now() - start) / 1000 };
}

function startTasks(contestant: Contestant): Promise<Speaker[]> {
  return Promise.all(Array.from({ length: tasks }, (_, index) => startTask(contestant, index)));
}

function closeAll(speakers: readonly Speaker[]): void {
  for (const { connection } of speakers) connection.close();
}

async function startTask(contestant: Contestant, index: number): Promise<Speaker> {
  const connection = await Connection.open(contestant.port);
  const { task } = await call<{ task: { id: string; contextId: string } }>(connection, contestant, "SendMessage", {
    message: { messageId: `first-${index}`, role: "ROLE_USER", parts: [{ text: "hello" }] },
    configuration,
  });
  const ids = { taskId: task.id, contextId: task.contextId };
  const template = new MessageTemplate(contestant, "SendMessage", `t${index}`, { ...ids, configuration });
  const sink = new BodySink();
  const say = async (messages: number) => {
    for (let message = 0; message < messages; message++) {
      await connection.exchange(template.next(), sink);
      const body = sink.take();
      if (!body.includes("TASK_STATE_INPUT_REQUIRED")) {
        throw new Error(`unexpected answer: ${body.toString().slice(0, 500)}`);
      }
    }
  };
  return { connection, say };
}
