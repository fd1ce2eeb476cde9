import type { Endpoint } from "../client/requests.ts";
import type { Question, Reply, Settings } from "./protocol.ts";

interface Running extends Endpoint {
  close(): Promise<void> | void;
}

/** Runs the current process as a contestant: starts it as the parent requested and replies to the parent's messages. */
export async function runContestant(start: (settings: Settings) => Promise<Running>): Promise<void> {
  const settings: Settings = JSON.parse(process.argv[2] ?? "{}");
  const running = await start(settings);
  process.on("disconnect", () => process.exit());
  process.on("message", (question: Question) => {
    switch (question) {
      case "cpu": {
        const { user, system } = process.cpuUsage();
        return reply({ cpu: user + system });
      }
      case "memory":
        return void settleMemory().then((memory) => reply({ memory }));
      case "stop":
        return void Promise.resolve(running.close()).finally(() => process.exit());
    }
  });
  const { close: _close, ...ready } = running;
  reply({ ready });
}

/** Collects garbage until nothing more is freed: socket finalizers need an event loop turn between collections. */
async function settleMemory() {
  for (let pass = 0; pass < 4; pass++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, heapUsed, external };
}

function reply(message: Reply): void {
  process.send?.(message);
}
