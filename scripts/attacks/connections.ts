import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { Attack, Target } from "./kit/attack.ts";
import { closed, deadline, hold, openSockets, send, sourceAddress } from "./kit/sockets.ts";

const CONNECTIONS = 1_000;
const CARD = "GET /.well-known/agent-card.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
const CATALOG = "GET /.well-known/ai-catalog.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

const tls: NonNullable<Attack["config"]> = ({ directory }) => {
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2"];
  execFileSync("openssl", [...request, "-subj", "/CN=localhost"], { stdio: "ignore" });
  return { server: { tls: { cert, key } } };
};

export const openHandshakes: Attack = {
  name: "open-handshakes",
  what: `${2 * CONNECTIONS} connections from 250 addresses begin TLS, and say nothing more`,
  config: tls,
  async run(target) {
    const isOver = deadline(target);
    // A record of 16 KB of which all but the end is sent.
    const start = Buffer.concat([Buffer.from([22, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb]), Buffer.alloc(16_000)]);
    const attack = async (port: number) => {
      while (!isOver()) {
        const [socket] = await openSockets(port, 1, true);
        if (socket === undefined) continue;
        await send(target, socket, start);
        await closed(target, socket);
      }
    };
    const ports = [target.httpPort, target.grpcPort];
    await Promise.all(ports.flatMap((port) => Array.from({ length: CONNECTIONS }, () => attack(port))));
  },
};

export const handshakes: Attack = {
  name: "handshakes",
  what: "50 connections at a time finish TLS, and close",
  config: tls,
  async run(target) {
    const isOver = deadline(target);
    const attack = async (index: number) => {
      while (!isOver()) {
        await new Promise<void>((resolve) => {
          const from = { localAddress: sourceAddress(index) };
          const socket = connectTls({ port: target.httpPort, host: "127.0.0.1", rejectUnauthorized: false, ...from });
          socket.on("error", () => {}).once("close", () => resolve());
          socket.once("secureConnect", () => socket.destroy());
          target.sent(1_000);
        });
      }
    };
    await Promise.all(Array.from({ length: 50 }, (_, index) => attack(index)));
  },
};

export const unreadCatalogs: Attack = {
  name: "unread-catalogs",
  what: `${CONNECTIONS} connections from 250 addresses ask for a catalog of 300 agents and for cards, and read nothing`,
  config: () => ({
    agents: Object.fromEntries(
      ["echo", ...Array.from({ length: 300 }, (_, at) => `agent-${at}`)].map((name) => [name, { use: "echo" }]),
    ),
  }),
  async run(target) {
    const isOver = deadline(target);
    const sockets = await openSockets(target.httpPort, CONNECTIONS, true);
    await Promise.all(sockets.map((socket) => send(target, socket.pause(), CATALOG.repeat(30) + CARD.repeat(30))));
    await hold(isOver);
  },
};

function againAndAgain(name: string, what: string, bytes: string, more: Partial<Attack> = {}): Attack {
  return {
    name,
    what,
    ...more,
    async run(target: Target) {
      const isOver = deadline(target);
      const attack = async () => {
        while (!isOver()) {
          const [socket] = await openSockets(target.httpPort, 1, true);
          if (socket === undefined) continue;
          await send(target, socket, bytes);
          await closed(target, socket);
        }
      };
      await Promise.all(Array.from({ length: 2 * CONNECTIONS }, attack));
    },
  };
}

export const slowHeaders = againAndAgain(
  "slow-headers",
  `${2 * CONNECTIONS} connections from 250 addresses send headers without an end`,
  `POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\n${"a: b\r\n".repeat(2_000)}`,
);

export const halfOpenUpgrades = againAndAgain(
  "half-open-upgrades",
  `${2 * CONNECTIONS} connections from 250 addresses ask for a WebSocket without credentials`,
  "GET /openclaw/v1/ws/link HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  {
    config: () => ({
      agents: {
        echo: { use: "echo" },
        dialled: { link: { agentId: "agent-1", ak: "access-key-1234567890", sk: "secret-key-1234567890" } },
      },
    }),
  },
);

export const connectionFlood: Attack = {
  name: "connection-flood",
  what: "connections from 250 addresses are opened and closed as fast as possible, against callers that come anew",
  reconnects: true,
  async run(target) {
    const isOver = deadline(target);
    while (!isOver()) {
      const sockets = await openSockets(target.httpPort, 500, true);
      await delay(5);
      for (const socket of sockets) socket.resume().end();
    }
  },
};

export const mediumChunks = againAndAgain(
  "medium-chunks",
  `${2 * CONNECTIONS} connections from 250 addresses send bodies in chunks of 1,024 bytes`,
  `POST /agents/echo HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n${`400\r\n${" ".repeat(1_024)}\r\n`.repeat(60)}`,
);

export const registryPosts = againAndAgain(
  "registry-posts",
  `${2 * CONNECTIONS} connections from 250 addresses post cards of 60 KB`,
  `POST /registry/agents HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n${"[".repeat(59_999)}`,
);
