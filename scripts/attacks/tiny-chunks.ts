import type { Attack } from "./kit/attack.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 250;
const CHUNKS = 60_000;
const AT_ONCE = 2_000;

export const tinyChunks: Attack = {
  name: "tiny-chunks",
  what: `${CONNECTIONS} connections send bodies in chunks of one byte, ${CHUNKS} each`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS);
    const head =
      "POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    const chunks = "1\r\n \r\n".repeat(AT_ONCE);
    await Promise.all(
      sockets.map(async (socket) => {
        await send(target, socket, head);
        for (let done = 0; done < CHUNKS && !isOver(); done += AT_ONCE) {
          if (!(await send(target, socket, chunks))) return;
        }
      }),
    );
    await hold(isOver);
  },
};
