/** Opens and maintains the connections of all dialects. The messages on them belong to the dialects. */

import type { AcceptedConnections, Carrier, CarrierHost, PeerCaller } from "../../dialects/carrier.ts";
import type { Dialect, DialectTools } from "../../dialects/contract.ts";
import type { ConnectionState, DialLoop } from "../../dialects/shared/dial-loop.ts";
import type { Agent } from "../../engine/agent.ts";
import type { Delivery } from "../../model/operation.ts";
import type { RequestHead } from "../../wire/exchange.ts";
import type { AcceptorOptions, UpgradeHandler } from "./accept.ts";
import { bindPeers } from "./peer-agent.ts";

export interface CarriersOptions {
  readonly dialects: readonly Dialect[];
  readonly agents: Readonly<Record<string, Agent>>;
  readonly tools: Pick<DialectTools, "clock" | "log" | "random">;
  readonly gate: AcceptorOptions["gate"];
  /** Absent: connections cannot be accepted. */
  readonly endpoint: AcceptorOptions["endpoint"] | undefined;
  /** Returns how to end it. */
  serveRoute(route: { readonly route: string; deliver(delivery: Delivery): Promise<void> }): () => Promise<void>;
  hostFor(dialect: string): Omit<CarrierHost, "accepts">;
}

export interface Carriers {
  /** Finds who can be called at an address, and in which dialect. */
  findPeer(address: string): { readonly dialect: string; readonly peer: PeerCaller } | undefined;
  /** Makes an agent callable that is served later. */
  bind(agent: Agent): void;
  /** States of dialled connections by dialect; includes every dialect that can dial. */
  states(): ReadonlyMap<string, readonly ConnectionState[]>;
  /** Absent if no dialect accepts connections. */
  readonly upgrade: UpgradeHandler | undefined;
  /** Plain HTTP requests that belong to accepted connections. */
  readonly answer: NonNullable<AcceptedConnections["answer"]>;
  /** Gives complete responses a moment to be sent and closes the dialled connections; agents can still be called. */
  settle(): Promise<void>;
  /** Closes the accepted connections. To be called after the engine has closed. */
  close(): void;
}

const SETTLE_MS = 1_000;

/** Throws a TypeError for invalid settings. Does not wait for connections to open. */
export async function openCarriers(options: CarriersOptions): Promise<Carriers> {
  const { agents, dialects, endpoint, gate, hostFor, serveRoute, tools } = options;
  const opened = new Map<string, readonly Carrier[]>();
  for (const { name, serving } of dialects) {
    if (serving.carriers === undefined) continue;
    opened.set(name, await serving.carriers({ ...hostFor(name), accepts: endpoint !== undefined }));
  }
  const carriers = [...opened.values()].flat();
  bindPeers(agents, carriers);
  const accepting = [...opened].flatMap(([dialect, own]) =>
    own.flatMap(({ accept, name }) => (accept === undefined ? [] : [{ ...accept, name, dialect }])),
  );
  // Modules for accepting and dialling are loaded only if used.
  const acceptor =
    endpoint === undefined || accepting.length === 0
      ? undefined
      : (await import("./accept.ts")).createAcceptor(accepting, { endpoint, gate, ...tools });
  const routes = carriers.flatMap((carrier) =>
    carrier.deliver === undefined
      ? []
      : [serveRoute({ route: carrier.name, deliver: async (delivery) => carrier.deliver?.(delivery) })],
  );
  const loops = new Map<string, readonly DialLoop[]>();
  for (const [dialect, own] of opened) loops.set(dialect, await dialAll(own, tools));
  return {
    findPeer(address) {
      for (const [dialect, own] of opened) {
        for (const carrier of own) {
          const peer = carrier.peer?.(address);
          if (peer !== undefined) return { dialect, peer };
        }
      }
      return undefined;
    },
    bind: (agent) => bindPeers({ agent }, carriers),
    states: () => new Map([...loops].map(([dialect, own]) => [dialect, own.map(({ state }) => state)])),
    upgrade: acceptor?.upgrade,
    answer: (request: RequestHead) => {
      for (const { answer } of accepting) {
        const reply = answer?.(request);
        if (reply !== undefined) return reply;
      }
      return undefined;
    },
    async settle() {
      await Promise.all(carriers.map((carrier) => carrier.settle(SETTLE_MS)));
      for (const carrier of carriers) carrier.close();
      await Promise.all(routes.map((end) => end()));
      await Promise.all([...loops.values()].flat().map((loop) => loop.stop()));
    },
    close: () => acceptor?.close(),
  };
}

async function dialAll(carriers: readonly Carrier[], tools: CarriersOptions["tools"]): Promise<readonly DialLoop[]> {
  const connections = carriers.flatMap(({ open = [] }) => open);
  if (connections.length === 0) return [];
  const { DialLoop } = await import("../../dialects/shared/dial-loop.ts");
  return connections.map((connection) => new DialLoop(connection, tools));
}
