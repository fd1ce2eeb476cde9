import type { Attack, Target } from "./kit/attack.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 200;
const AT_ONCE = 500;
const REQUESTS = 20_000;
const CARD = "/.well-known/agent-card.json";

export const pipelinedRequests: Attack = {
  name: "pipelined-requests",
  what: `${CONNECTIONS} connections ask for the card again and again, and read nothing`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS);
    const requests = `GET ${CARD} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`.repeat(AT_ONCE);
    await Promise.all(
      sockets.map(async (socket) => {
        socket.pause();
        for (let done = 0; done < REQUESTS && !isOver(); done += AT_ONCE) {
          if (!(await send(target, socket, requests))) return;
        }
      }),
    );
    await hold(isOver);
  },
};

const BATCH = 60;
const DISTRIBUTED = 1_000;

/** As many at once as are answered, from many addresses, again and again. */
async function sendBatches(target: Target, headers: string): Promise<void> {
  const isOver = deadline(target);
  const request = `GET ${CARD} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n`;
  const batch = request.repeat(BATCH);
  const attack = async () => {
    while (!isOver()) {
      const [socket] = await openSockets(target.httpPort, 1, true);
      if (socket === undefined) continue;
      let answers = 0;
      let settle = () => {};
      socket.on("data", (piece: Buffer) => {
        answers += piece.toString("latin1").split("HTTP/1.1 ").length - 1;
        if (answers >= BATCH) settle();
      });
      while (!isOver() && (await send(target, socket, batch))) {
        await new Promise<void>((resolve) => {
          settle = resolve;
          socket.once("close", resolve);
        });
        answers = 0;
      }
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: DISTRIBUTED }, attack));
}

export const batchedRequests: Attack = {
  name: "batched-requests",
  what: `${DISTRIBUTED} connections from 250 addresses ask ${BATCH} times at once for the card, and read the answers`,
  run: (target) => sendBatches(target, ""),
};

export const batchedLongHeader: Attack = {
  name: "batched-long-header",
  what: "the same, with a header of 15 KB in each request",
  run: (target) => sendBatches(target, `x-long: ${"x".repeat(15_000)}\r\n`),
};

export const batchedManyHeaders: Attack = {
  name: "batched-many-headers",
  what: "the same, with 1,500 headers in each request",
  run: (target) => sendBatches(target, "a: b\r\n".repeat(1_500)),
};
