import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Acts, type LoadResult, runLoad } from "../client/load.ts";
import { message, RequestTemplate } from "../client/requests.ts";
import { BodySink } from "../client/sinks.ts";
import type { Contestant } from "../contestants/launch.ts";
import { comparison } from "../scenario.ts";

const connections = 16;

export const webhooks = comparison({
  name: "webhooks",
  title: `blocking send with a webhook until its last notification arrived, ${connections} connections`,
  setup:
    "A receiver in the measuring process answers every POST with 200; a send counts when the notification of its completed task " +
    "has arrived. @a2a-js/sdk posts the three events of a task, each once, without order or retry, with configs in memory. " +
    "Dragoman also posts the submitted task, in order, and records what was delivered. Frames are notifications.",
  targets: [{ measure: "cpuMicros", of: "a2a-js memory", times: "dragoman memory", atLeast: 2 }],
  entries: [
    { label: "dragoman memory", contestant: "dragoman", agent: "echo", store: "memory" },
    { label: "dragoman SQLite", contestant: "dragoman", agent: "echo", store: "sqlite" },
    { label: "a2a-js memory", contestant: "a2a-js", agent: "echo", store: "memory", push: true },
  ],
  counts: { warmUp: 2_000, measured: 4_000, quick: 200 },
  load: (contestant) => (count) => withReceiver((receiver) => sendAll(contestant, receiver, count)),
});

interface Receiver {
  readonly url: string;
  notifications: number;
  /** Resolves when the next notification with a completed task arrives at this path. */
  completed(path: string): Promise<void>;
}

async function sendAll(contestant: Contestant, receiver: Receiver, count: number): Promise<LoadResult> {
  const acts: Acts = (endpoint, index) => {
    const path = `/${index}`;
    const taskPushNotificationConfig = { url: receiver.url + path };
    const template = new RequestTemplate(endpoint, message("hello", { configuration: { taskPushNotificationConfig } }));
    const sink = new BodySink();
    return async (connection) => {
      const completed = receiver.completed(path);
      await connection.exchange(template.next(), sink);
      const body = sink.take();
      if (!body.includes("TASK_STATE_COMPLETED"))
        throw new Error(`unexpected answer: ${body.toString("utf8", 0, 500)}`);
      await completed;
      return 0;
    };
  };
  const result = await runLoad(contestant, { connections, count }, acts);
  return { ...result, frames: receiver.notifications };
}

async function withReceiver<Result>(use: (receiver: Receiver) => Promise<Result>): Promise<Result> {
  const waiting = new Map<string, () => void>();
  const server = createServer((request, response) => {
    let isCompleted = false;
    request.on("data", (piece: Buffer) => {
      isCompleted ||= piece.includes("TASK_STATE_COMPLETED");
    });
    request.on("end", () => {
      receiver.notifications++;
      response.end();
      if (isCompleted) waiting.get(request.url ?? "")?.();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    notifications: 0,
    completed: (path) => new Promise((resolve) => waiting.set(path, resolve)),
  };
  try {
    return await use(receiver);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
