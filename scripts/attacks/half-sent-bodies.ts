import type { Attack } from "./kit/attack.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 2_000;
const BYTES = 60_000;

export const halfSentBodies: Attack = {
  name: "half-sent-bodies",
  what: `${CONNECTIONS} connections send all but the end of a body of ${BYTES} bytes`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS);
    const head = `POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${BYTES}\r\n\r\n`;
    await Promise.all(
      sockets.map(async (socket) => {
        await send(target, socket, head);
        await send(target, socket, " ".repeat(BYTES - 1));
      }),
    );
    await hold(isOver);
  },
};
