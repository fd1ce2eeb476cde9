import type { Agent } from "../../src/core/engine/agent.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import {
  createSimulator,
  type ScenarioOptions,
  type Simulator,
  type SimulatorOptions,
  seededRandom,
} from "../../src/features/xiaoyi/simulator/index.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";
import { createTalker, PHRASES } from "./talker.ts";

export interface Stage {
  simulate(options?: Partial<SimulatorOptions>): Promise<Simulator>;
  serve(xiaoyi: NonNullable<ServeOptions["xiaoyi"]>, talker?: Agent): Promise<DragomanServer>;
}

/** For scenarios with an agent that says what it is told. What comes after an end is looked for in `link.test.ts`. */
export function sceneOf(seed: number, patienceMs: number): ScenarioOptions {
  const random = seededRandom(seed);
  return { clock: systemClock, random, phrases: PHRASES, expected: (said) => said, patienceMs, quietMs: 20 };
}

export function createStage(seed: number): Stage {
  return {
    async simulate(options = {}) {
      const simulator = await createSimulator({ clock: systemClock, random: seededRandom(seed), ...options });
      closeLater(() => simulator.close());
      return simulator;
    },
    serve: (xiaoyi, talker = createTalker()) => startServer({ grpcPort: false, agents: { talker }, xiaoyi }),
  };
}
