/** Agents on a chat network in memory, each on an engine of its own, with people that the test plays. */

import type { Carrier } from "../../../../core/dialects/carrier.ts";
import type { Agent } from "../../../../core/engine/agent.ts";
import { type FakeClock, settle } from "../../../../core/engine/testing/fake-clock.ts";
import { createSharedMemory, Harness } from "../../../../core/engine/testing/harness.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import { type Log, NO_METER } from "../../../../core/model/ports.ts";
import { ServedAgentService } from "../../../../core/server/agent-service.ts";
import { uuidIds } from "../../../../core/server/clock-and-ids.ts";
import type { Channel } from "../../../../core/wire/channel.ts";
import { createChannelCarrier } from "../bind-channel.ts";
import type { ChannelEntry } from "../options.ts";
import type { Member, MemoryNetwork } from "./memory-network.ts";

export const AGENT: Member = { id: "u-agent", name: "agent", bot: true };
export const ALICE: Member = { id: "u-alice", name: "alice", bot: false };
export const BOB: Member = { id: "u-bob", name: "bob", bot: false };
export const ROBOT: Member = { id: "u-robot", name: "robot", bot: true };

interface StageOptions extends Partial<Pick<ChannelEntry, "allowPeers" | "allowBots" | "rooms" | "calls">> {
  readonly agent: Agent;
  /** The participant that the agent is. */
  readonly as?: Member;
  /** The stage of an earlier process. */
  readonly after?: Stage;
  /** Shares its clock with others on the network. */
  readonly clock?: FakeClock;
  /** Default: true. */
  readonly isReachable?: boolean;
}

const LIMITS = { maxDepth: 64, maxValues: 200_000, maxParts: 100, keepAliveMs: 60_000 };

export class Stage {
  readonly harness: Harness;
  readonly carrier: Carrier<Channel>;
  readonly lines: string[] = [];
  /** Losses of connection are noticed at once; the test says when the next one comes. */
  isReachable: boolean;
  readonly #stop = new AbortController();
  #endRoute = async (): Promise<void> => {};

  private constructor(harness: Harness, network: MemoryNetwork, options: StageOptions) {
    this.harness = harness;
    const { allowBots = false, allowPeers = ["*"], as = AGENT, calls, isReachable = true, rooms } = options;
    this.isReachable = isReachable;
    const note = (fields: object, message: string): void =>
      void this.lines.push(`${message} ${JSON.stringify(fields)}`);
    const log: Log = { debug: note, info: note, warn: note, error: note };
    const service = new ServedAgentService({
      name: "agent",
      engine: harness.engine,
      ids: uuidIds,
      clock: harness.clock,
      log,
      interfaces: () => [],
      authentication: { identifies: true, security: { schemes: {}, requirements: [] }, challenged: (error) => error },
    });
    const entry: ChannelEntry = {
      name: `memory:${as.name}`,
      network: "memory",
      label: "the network in memory",
      agent: "agent",
      caller: { owner: "alice", authenticated: true },
      allowPeers,
      allowBots,
      rooms,
      open: async ({ cursors }) => network.open(as, cursors),
      ...(calls !== undefined && { calls }),
    };
    const host = {
      ids: uuidIds,
      report: () => {},
      agents: new Map([["agent", service]]),
      accepts: false,
      limits: LIMITS,
      replies: harness.engine.replies,
      records: harness.engine.records,
      context(agent: string, caller: ChannelEntry["caller"]) {
        if (agent !== "agent") throw new ProtocolError("METHOD_NOT_FOUND", "Agent not found.");
        return { ids: uuidIds, report: () => {}, service, caller, limits: LIMITS, agentOfTenant: () => undefined };
      },
    };
    const tools = { clock: harness.clock, ids: uuidIds, random: () => 0.5, log, meter: NO_METER };
    this.carrier = createChannelCarrier(entry, host, tools);
  }

  static async open(network: MemoryNetwork, options: StageOptions): Promise<Stage> {
    const after = options.after?.harness;
    const harness = await Harness.start({
      agent: options.agent,
      ...(after === undefined ? undefined : { after }),
      ...(options.clock === undefined ? undefined : { shared: createSharedMemory(options.clock) }),
    });
    const stage = new Stage(harness, network, options);
    const deliver = stage.carrier.deliver?.bind(stage.carrier) ?? (async () => {});
    stage.#endRoute = harness.engine.serveRoute({ route: stage.carrier.name, deliver });
    void stage.#connect();
    await settle();
    return stage;
  }

  /** Ends like a process that is stopped. */
  async stop(): Promise<void> {
    const settled = this.carrier.settle(0);
    await this.harness.clock.advance(0);
    await settled;
    this.carrier.close();
    await this.#endRoute();
    await this.disconnect();
    await this.harness.engine.close();
  }

  /** Ends without a chance to do anything. */
  async kill(): Promise<void> {
    this.harness.crash();
    this.carrier.close();
    await this.disconnect();
  }

  async disconnect(): Promise<void> {
    this.#stop.abort();
    await settle();
  }

  async #connect(): Promise<void> {
    const [connection] = this.carrier.open ?? [];
    if (connection === undefined) return;
    const { signal } = this.#stop;
    for (;;) {
      while (!this.isReachable && !signal.aborted) await settle(1);
      if (signal.aborted) return;
      const channel = await connection.dial(signal);
      signal.addEventListener("abort", () => channel.close(), { once: true });
      await connection.converse(channel);
      channel.close();
    }
  }
}
