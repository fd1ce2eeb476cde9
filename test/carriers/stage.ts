/** Three agents in one room over one connection, and what they are made of. */
import { defineAgent } from "../../src/agents/define.ts";
import type { Dialect } from "../../src/dialects/contract.ts";
import { ProtocolError } from "../../src/model/errors.ts";
import { isUrlPart } from "../../src/model/message.ts";
import { type Log, NO_METER } from "../../src/model/ports.ts";
import { type Carriers, openCarriers } from "../../src/server/carriers/carriers.ts";
import { createPeerAgent } from "../../src/server/carriers/peer-agent.ts";
import { systemClock, systemTools, uuidIds } from "../../src/server/clock-and-ids.ts";
import type { TaskStore } from "../../src/store/contract.ts";
import { LIMITS, startEngine } from "../support/engine-services.ts";
import { dialRoom } from "./room-channel.ts";
import { createRoom } from "./room-dialect.ts";
import type { RoomServer } from "./room-server.ts";

export interface RoomStage {
  readonly carriers: Carriers;
  /** Lets `count` say its next number. */
  step(): void;
  /** Log messages. */
  readonly lines: string[];
  /** Waits so long for runs at most. */
  close(drainMs?: number): Promise<void>;
}

const asker = defineAgent({
  name: "Asker",
  description: "Asks which colour, reads and makes files.",
  async *run(turn) {
    const files = turn.message.parts.filter(isUrlPart);
    if (files.length > 0) {
      const texts = await Promise.all(files.map(async ({ url }) => (await fetch(url)).text()));
      return turn.reply(`${files[0]?.filename} says: ${texts.join()}`);
    }
    if (turn.text.includes("file")) {
      const raw = Buffer.from("made here").toString("base64");
      yield turn.artifact({
        name: "note",
        parts: [{ text: "Here." }, { raw, filename: "note.txt", mediaType: "text/plain" }],
      });
    } else if (turn.text.includes("much")) yield turn.artifact({ name: "much", text: "long ".repeat(200) });
    else if (turn.text.includes("broken")) throw new Error("broken");
    else if (turn.history.length === 0) yield turn.inputRequired("Which colour?");
    else yield turn.completed(`It is ${turn.text}.`);
    return undefined;
  },
});

export async function openRoomStage(room: RoomServer, store?: TaskStore): Promise<RoomStage> {
  const steps: (() => void)[] = [];
  const waiting: (() => void)[] = [];
  const next = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve());
      if (steps.shift() === undefined) waiting.push(resolve);
      else resolve();
    });
  const counter = defineAgent({
    name: "Counter",
    description: "Counts to three, one step at a time.",
    async *run(turn) {
      for (let number = 1; number <= 3; number++) {
        yield turn.artifact({ name: "count", text: `${number} `, append: number > 1 });
        await next(turn.signal);
        if (turn.signal.aborted) return;
      }
    },
  });
  const scout = createPeerAgent({
    carrier: "room:lobby",
    peer: "oracle",
    name: "Scout",
    description: "Asks the oracle.",
  });
  const agents = { asker, counter, scout };
  const { engine, services } = await startEngine(agents, store);
  const lines: string[] = [];
  const note = (_fields: unknown, message: string) => void lines.push(message);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const tools = { ...systemTools, log, meter: NO_METER };
  const participants = [...Object.keys(agents), "ghost"].map((id) => ({ id, name: id, bot: true }));
  const dialect: Dialect = createRoom(tools, {
    room: "lobby",
    // The ghost is in the room, but there is no such agent.
    agents: new Map(participants.map(({ id }) => [id, id])),
    asker: "scout",
    policy: { baseMs: 1, capMs: 10, resetAfterMs: 0 },
    dial: (since, signal) =>
      dialRoom({ url: room.url, room: "lobby", participants, since, clock: systemClock, signal }),
  });
  const carriers = await openCarriers({
    dialects: [dialect],
    agents,
    tools,
    gate: { checkAddress: () => undefined, refuse: (error) => error },
    endpoint: undefined,
    serveRoute: (route) => engine.serveRoute(route),
    hostFor: () => ({
      ids: uuidIds,
      limits: LIMITS,
      report: () => {},
      agents: services,
      replies: engine.replies,
      records: engine.records,
      context(agent, caller) {
        const service = services.get(agent);
        if (service === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "Agent not found.");
        return { ids: uuidIds, report: () => {}, service, caller, limits: LIMITS, agentOfTenant: () => undefined };
      },
    }),
  });
  return {
    carriers,
    lines,
    step() {
      const resolve = waiting.shift();
      if (resolve === undefined) steps.push(() => {});
      else resolve();
    },
    async close(drainMs = 0) {
      await engine.drain(drainMs);
      await carriers.settle();
      await engine.close();
      carriers.close();
    },
  };
}
