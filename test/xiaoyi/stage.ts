import { afterEach } from "vitest";
import type { Agent } from "../../src/engine/agent.ts";
import { systemClock } from "../../src/server/clock-and-ids.ts";
import { type DragomanServer, type ServeOptions, serve } from "../../src/server/serve.ts";
import {
  createSimulator,
  type ScenarioOptions,
  type Simulator,
  type SimulatorOptions,
  seededRandom,
} from "../../src/simulator/index.ts";
import { createTalker, PHRASES } from "./talker.ts";

export interface Stage {
  simulate(options?: Partial<SimulatorOptions>): Promise<Simulator>;
  serve(xiaoyi: NonNullable<ServeOptions["xiaoyi"]>, talker?: Agent): Promise<DragomanServer>;
}

/** For scenarios with an agent that says what it is told. */
export function sceneOf(seed: number, patienceMs: number): ScenarioOptions {
  return { clock: systemClock, random: seededRandom(seed), phrases: PHRASES, expected: (said) => said, patienceMs };
}

/** Everything is closed after each test, the newest first. */
export function createStage(seed: number): Stage {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  return {
    async simulate(options = {}) {
      const simulator = await createSimulator({ clock: systemClock, random: seededRandom(seed), ...options });
      closing.unshift(() => simulator.close());
      return simulator;
    },
    async serve(xiaoyi, talker = createTalker()) {
      const server = await serve({ port: 0, grpcPort: false, log: false, agents: { talker }, xiaoyi });
      closing.unshift(() => server.close());
      return server;
    },
  };
}
