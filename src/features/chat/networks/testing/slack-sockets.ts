/** Socket Mode of a simulated Slack: an event goes to one connection of the app and is repeated until acknowledged. */

import type { WebSocket } from "ws";

interface Envelope {
  readonly envelope_id: string;
  readonly event: object;
  attempts: number;
}

export interface SlackSockets {
  /** For one connection of the app. */
  issueTicket(appToken: string): string;
  connect(socket: WebSocket, ticket: string): void;
  deliver(appToken: string, event: object): void;
  refresh(): void;
  unacknowledged(): number;
}

export function createSlackSockets(): SlackSockets {
  const tickets = new Map<string, string>();
  const connected = new Map<string, Set<WebSocket>>();
  const pending = new Map<string, Map<string, Envelope>>();
  let ids = 0;

  function send(socket: WebSocket, envelope: Envelope): void {
    const retries = envelope.attempts++;
    const { envelope_id, event } = envelope;
    const payload = { type: "event_callback", event, event_id: `Ev${envelope_id}`, team_id: "T0" };
    const retry = { retry_attempt: retries, retry_reason: retries === 0 ? "" : "timeout" };
    socket.send(
      JSON.stringify({ type: "events_api", envelope_id, payload, accepts_response_payload: false, ...retry }),
    );
  }

  return {
    issueTicket(appToken) {
      const ticket = `ticket-${++ids}`;
      tickets.set(ticket, appToken);
      return ticket;
    },
    connect(socket, ticket) {
      const app = tickets.get(ticket);
      if (app === undefined) return socket.close(1008, "invalid ticket");
      tickets.delete(ticket);
      const sockets = connected.get(app) ?? new Set();
      connected.set(app, sockets.add(socket));
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
      socket.on("message", (data: Buffer) => {
        const { envelope_id } = JSON.parse(data.toString("utf8")) as { readonly envelope_id: string };
        pending.get(app)?.delete(envelope_id);
      });
      const connection_info = { app_id: "A0" };
      socket.send(JSON.stringify({ type: "hello", num_connections: sockets.size, connection_info }));
      for (const envelope of pending.get(app)?.values() ?? []) send(socket, envelope);
    },
    deliver(app, event) {
      const envelope: Envelope = { envelope_id: `envelope-${++ids}`, event, attempts: 0 };
      const waiting = pending.get(app) ?? new Map<string, Envelope>();
      pending.set(app, waiting.set(envelope.envelope_id, envelope));
      const [socket] = connected.get(app) ?? [];
      if (socket !== undefined) send(socket, envelope);
      // Slack does not keep events of an app that is not connected.
      else waiting.delete(envelope.envelope_id);
    },
    refresh() {
      const reason = JSON.stringify({ type: "disconnect", reason: "refresh_requested", debug_info: {} });
      for (const sockets of connected.values()) for (const socket of sockets) socket.send(reason);
    },
    unacknowledged: () => [...pending.values()].reduce((sum, { size }) => sum + size, 0),
  };
}
