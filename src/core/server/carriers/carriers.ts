/** Opens and maintains the connections of all dialects. The messages on them belong to the dialects. */

import type { AcceptedConnections, Carrier, CarrierHost, PeerCaller } from "../../dialects/carrier.ts";
import type { Dialect, DialectTools } from "../../dialects/contract.ts";
import type { ConnectionState, DialLoop } from "../../dialects/shared/dial-loop.ts";
import type { Agent } from "../../engine/agent.ts";
import type { Delivery } from "../../model/operation.ts";
import type { RequestHead } from "../../wire/exchange.ts";
import type { UpgradeHandler } from "../http/node-http.ts";
import type { AcceptorOptions } from "./accept.ts";
import type { Hold, HoldTools } from "./hold.ts";
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
  /** Where several nodes share a store: one of them dials. */
  readonly hold?: Omit<HoldTools, "clock" | "log"> | undefined;
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
  const { agents, dialects, endpoint, gate, hostFor, tools } = options;
  const opened = new Map<string, readonly Carrier[]>();
  for (const { name, serving } of dialects) {
    if (serving.carriers === undefined) continue;
    opened.set(name, await serving.carriers({ ...hostFor(name), accepts: endpoint !== undefined }));
  }
  const served: ServedCarrier[] = [];
  const bind = (some: Readonly<Record<string, Agent>>) => bindPeers(some, served);
  for (const [dialect, own] of opened) {
    for (const carrier of own)
      served.push(new ServedCarrier(dialect, carrier, { ...options, onOpened: () => bind(agents) }));
  }
  bind(agents);
  const accepting = served.flatMap(({ carrier: { accept, name }, dialect }) =>
    accept === undefined ? [] : [{ ...accept, name, dialect }],
  );
  // Modules for accepting and dialling are loaded only if used.
  const acceptor =
    endpoint === undefined || accepting.length === 0
      ? undefined
      : (await import("./accept.ts")).createAcceptor(accepting, { endpoint, gate, ...tools });
  for (const one of served) await one.start();
  return {
    findPeer(address) {
      for (const { carrier, dialect } of served) {
        const peer = carrier.peer?.(address);
        if (peer !== undefined) return { dialect, peer };
      }
      return undefined;
    },
    bind: (agent) => bind({ agent }),
    states() {
      const states = new Map<string, readonly ConnectionState[]>([...opened.keys()].map((dialect) => [dialect, []]));
      for (const one of served) states.set(one.dialect, [...(states.get(one.dialect) ?? []), ...one.states]);
      return states;
    },
    upgrade: acceptor?.upgrade,
    answer: (request: RequestHead) => {
      for (const { answer } of accepting) {
        const reply = answer?.(request);
        if (reply !== undefined) return reply;
      }
      return undefined;
    },
    settle: async () => void (await Promise.all(served.map((one) => one.end(SETTLE_MS)))),
    close: () => acceptor?.close(),
  };
}

interface ServedCarrierOptions extends Pick<CarriersOptions, "hold" | "serveRoute" | "tools"> {
  /** The connections are this node's now, and the carrier may be another object. */
  readonly onOpened: () => void;
}

/** A carrier whose connections this node has, always or while no other node has them. */
class ServedCarrier {
  readonly dialect: string;
  carrier: Carrier;
  readonly #options: ServedCarrierOptions;
  #hold: Hold | undefined;
  #loops: readonly DialLoop[] = [];
  #endRoute: (() => Promise<void>) | undefined;

  constructor(dialect: string, carrier: Carrier, options: ServedCarrierOptions) {
    this.dialect = dialect;
    this.carrier = carrier;
    this.#options = options;
  }

  /** Whether this node has its connections. */
  get isHeld(): boolean {
    return !this.#isShared || this.#hold?.isHeld === true;
  }

  get #isShared(): boolean {
    return this.#options.hold !== undefined && this.carrier.open !== undefined;
  }

  get states(): readonly ConnectionState[] {
    const { open = [] } = this.carrier;
    return this.isHeld ? this.#loops.map(({ state }) => state) : open.map(() => "standby" as const);
  }

  async start(): Promise<void> {
    const { hold, tools } = this.#options;
    if (hold === undefined || !this.#isShared) {
      await this.#open();
      return;
    }
    const { Hold } = await import("./hold.ts");
    this.#hold = new Hold(
      this.carrier.name,
      { ...hold, ...tools },
      {
        onGain: () => this.#open(),
        onLose: () => this.#close(),
        hasGivenUp: () => this.#loops.length > 0 && this.#loops.every(({ state }) => state === "given-up"),
      },
    );
  }

  /** Gives complete responses so long to be sent. */
  async end(settleMs: number): Promise<void> {
    if (this.isHeld) await this.carrier.settle(settleMs);
    if (this.#hold === undefined) await this.#close();
    else await this.#hold.release();
  }

  async #open(): Promise<void> {
    const { onOpened, serveRoute, tools } = this.#options;
    // What it has read from the store, another node may have changed since.
    if (this.#isShared && this.carrier.renew !== undefined) this.carrier = await this.carrier.renew();
    onOpened();
    const { carrier } = this;
    if (carrier.deliver !== undefined) {
      this.#endRoute = serveRoute({ route: carrier.name, deliver: async (delivery) => carrier.deliver?.(delivery) });
    }
    this.#loops = await dialAll(carrier, tools);
  }

  async #close(): Promise<void> {
    this.carrier.close();
    await this.#endRoute?.();
    this.#endRoute = undefined;
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    this.#loops = [];
  }
}

async function dialAll({ open = [] }: Carrier, tools: CarriersOptions["tools"]): Promise<readonly DialLoop[]> {
  if (open.length === 0) return [];
  const { DialLoop } = await import("../../dialects/shared/dial-loop.ts");
  return open.map((connection) => new DialLoop(connection, tools));
}
