import type { Attack } from "./kit/attack.ts";
import { OPENING } from "./kit/http2-frames.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 8_000;

export const idleGrpcConnections: Attack = {
  name: "idle-grpc-connections",
  what: `${CONNECTIONS} gRPC connections without a call`,
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.grpcPort, CONNECTIONS);
    await Promise.all(sockets.map((socket) => send(target, socket.resume(), OPENING)));
    await hold(isOver);
  },
};
