import { afterEach } from "vitest";
import { FakeClock } from "../../../../core/engine/testing/fake-clock.ts";
import type { SimulatorOptions } from "../options.ts";
import { seededRandom } from "../random.ts";
import { createSimulator, type Simulator } from "../simulator.ts";
import { RawAgent } from "./raw-agent.ts";

interface Stage {
  readonly clock: FakeClock;
  simulate(options?: Partial<SimulatorOptions>): Promise<Simulator>;
  /** An agent that is connected and has sent its init frame. */
  join(simulator: Simulator, host?: number): Promise<RawAgent>;
  /** An agent that is only connected. */
  dial(simulator: Simulator, host?: number): Promise<RawAgent>;
}

/** Simulators on a clock that does not advance; all are closed after each test. */
export function createStage(): Stage {
  const clock = new FakeClock();
  const simulators: Simulator[] = [];
  afterEach(async () => {
    await Promise.all(simulators.splice(0).map((simulator) => simulator.close()));
  });
  return {
    clock,
    async simulate(options = {}) {
      const simulator = await createSimulator({ clock, random: seededRandom(7), ...options });
      simulators.push(simulator);
      return simulator;
    },
    join: (simulator, host) => RawAgent.join(simulator, clock.now(), host),
    dial: (simulator, host) => RawAgent.dial(simulator, clock.now(), host),
  };
}

/** Resolves when the simulator has found this many violations. */
export function waitForViolations(simulator: Simulator, count: number): Promise<void> {
  if (simulator.violations.length >= count) return Promise.resolve();
  return new Promise((resolve) => {
    const stop = simulator.subscribe(() => {
      if (simulator.violations.length < count) return;
      stop();
      resolve();
    });
  });
}

export const rulesOf = (simulator: Simulator): readonly string[] => simulator.violations.map(({ rule }) => rule);
