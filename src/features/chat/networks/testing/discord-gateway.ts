/** The gateway of a simulated Discord: hello, identify, heartbeats, dispatches and resumed sessions. */

import type { WebSocket } from "ws";

/** Bits of the intents that a bot names when it identifies. */
export const INTENTS = { guilds: 1 << 0, guildMessages: 1 << 9, directMessages: 1 << 12, messageContent: 1 << 15 };

export interface GatewayBot {
  readonly id: string;
  readonly username: string;
  readonly token: string;
  /** The switch "Message Content Intent" of the Developer Portal. */
  readonly messageContent: boolean;
}

interface Session {
  readonly id: string;
  readonly bot: GatewayBot;
  readonly intents: number;
  readonly sent: { readonly op: 0; readonly t: string; readonly s: number; readonly d: unknown }[];
  socket: WebSocket | undefined;
}

export interface GatewayOptions {
  readonly bots: readonly GatewayBot[];
  readonly url: () => string;
  readonly guilds: (bot: GatewayBot) => readonly { readonly id: string }[];
  readonly heartbeatMs: number;
}

export interface Gateway {
  connect(socket: WebSocket): void;
  /** `toData` may hide parts; undefined: the bot does not receive the event. */
  dispatch(type: string, toData: (bot: GatewayBot, intents: number) => unknown): void;
  /** Closes all connections with this code. Sessions can be resumed. */
  drop(code: number): void;
  /** Sessions can no longer be resumed. */
  forgetSessions(): void;
  /** How often a session was resumed, and how often bots identified. */
  readonly counts: { resumed: number; identified: number; heartbeats: number };
}

export function createGateway({ bots, guilds, heartbeatMs, url }: GatewayOptions): Gateway {
  const sessions = new Map<string, Session>();
  const sockets = new Set<WebSocket>();
  const counts = { resumed: 0, identified: 0, heartbeats: 0 };

  function dispatchTo(session: Session, t: string, d: unknown): void {
    const payload = { op: 0 as const, t, s: session.sent.length + 1, d };
    session.sent.push(payload);
    session.socket?.send(JSON.stringify(payload));
  }

  function identify(socket: WebSocket, data: Readonly<Record<string, unknown>>): Session | undefined {
    const bot = bots.find(({ token }) => token === data.token);
    const intents = Number(data.intents);
    if (bot === undefined) return refuse(socket, 4004, "Authentication failed.");
    if (!Number.isInteger(intents)) return refuse(socket, 4013, "Invalid intent(s).");
    if ((intents & INTENTS.messageContent) !== 0 && !bot.messageContent) {
      return refuse(socket, 4014, "Disallowed intent(s).");
    }
    counts.identified++;
    const session: Session = { id: `session-${sessions.size + 1}`, bot, intents, sent: [], socket };
    sessions.set(session.id, session);
    const user = { id: bot.id, username: bot.username, discriminator: "0", bot: true, avatar: null };
    dispatchTo(session, "READY", {
      v: 10,
      user,
      guilds: guilds(bot).map(({ id }) => ({ id, unavailable: true })),
      session_id: session.id,
      resume_gateway_url: url(),
      application: { id: bot.id, flags: 0 },
    });
    for (const guild of guilds(bot)) dispatchTo(session, "GUILD_CREATE", guild);
    return session;
  }

  function resume(socket: WebSocket, data: Readonly<Record<string, unknown>>): Session | undefined {
    const session = sessions.get(String(data.session_id));
    if (session === undefined || session.bot.token !== data.token) {
      socket.send(JSON.stringify({ op: 9, d: false, s: null, t: null }));
      return undefined;
    }
    counts.resumed++;
    session.socket = socket;
    for (const payload of session.sent.filter(({ s }) => s > Number(data.seq))) socket.send(JSON.stringify(payload));
    dispatchTo(session, "RESUMED", {});
    return session;
  }

  return {
    counts,
    connect(socket) {
      sockets.add(socket);
      let session: Session | undefined;
      socket.on("close", () => {
        sockets.delete(socket);
        if (session?.socket === socket) session.socket = undefined;
      });
      socket.on("error", () => {});
      socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: heartbeatMs }, s: null, t: null }));
      socket.on("message", (data: Buffer) => {
        const payload = parsePayload(data);
        if (payload === undefined) return void refuse(socket, 4002, "Decode error.");
        const { d, op } = payload;
        const fields = typeof d === "object" && d !== null ? (d as Record<string, unknown>) : {};
        if (op === 1) {
          counts.heartbeats++;
          socket.send(JSON.stringify({ op: 11, d: null, s: null, t: null }));
        } else if (op === 2) {
          if (session !== undefined) return void refuse(socket, 4005, "Already authenticated.");
          session = identify(socket, fields);
        } else if (op === 6) session = resume(socket, fields);
        else if (session === undefined) refuse(socket, 4003, "Not authenticated.");
        else if (op !== 3 && op !== 4 && op !== 8) refuse(socket, 4001, "Unknown opcode.");
      });
    },
    dispatch(type, toData) {
      for (const session of sessions.values()) {
        const data = toData(session.bot, session.intents);
        if (data !== undefined) dispatchTo(session, type, data);
      }
    },
    drop(code) {
      for (const socket of sockets) socket.close(code);
    },
    forgetSessions: () => sessions.clear(),
  };
}

function refuse(socket: WebSocket, code: number, reason: string): undefined {
  socket.close(code, reason);
}

function parsePayload(data: Buffer): { readonly op: unknown; readonly d: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(data.toString("utf8"));
    return typeof value === "object" && value !== null && "op" in value
      ? { op: value.op, d: Reflect.get(value, "d") }
      : undefined;
  } catch {
    return undefined;
  }
}
