import type { Attack } from "./kit/attack.ts";
import { ask, deadline, openSockets } from "./kit/sockets.ts";

const CONNECTIONS = 20;
const OBJECTS = 9;
const KEYS = 600;

export const manyKeys: Attack = {
  name: "many-keys",
  what: `${CONNECTIONS} connections send JSON-RPC bodies of objects with many keys, one after another`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS);
    let name = 0;
    // New names each time: the engine keeps what it has seen before.
    const object = () => `{${Array.from({ length: KEYS }, () => `"k${(name++).toString(36)}":1`).join(",")}}`;
    await Promise.all(
      sockets.map(async (socket) => {
        while (!isOver()) {
          const params = Array.from({ length: OBJECTS }, object).join(",");
          const body = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":[${params}]}`;
          const head = `POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\na2a-version: 1.0\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
          if (!(await ask(target, socket, head + body))) return;
        }
      }),
    );
  },
};
