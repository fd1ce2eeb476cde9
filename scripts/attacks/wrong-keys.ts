import type { Attack } from "./kit/attack.ts";
import { ask, deadline, openSockets } from "./kit/sockets.ts";

const CONNECTIONS = 5;

export const wrongKeys: Attack = {
  name: "wrong-keys",
  what: `wrong keys from the address of the honest caller, as behind a proxy`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS);
    let guess = 0;
    await Promise.all(
      sockets.map(async (socket) => {
        while (!isOver()) {
          const head = `POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: wrong-${guess++}\r\ncontent-length: 2\r\n\r\n{}`;
          if (!(await ask(target, socket, head))) return;
        }
      }),
    );
  },
};
