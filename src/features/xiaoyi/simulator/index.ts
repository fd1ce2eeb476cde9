export type { RegisteredAgent } from "./authentication.ts";
export type { CloudCredentials } from "./cloud/credentials.ts";

export { DEFAULT_STYLE, type WireStyle } from "./link/wire-format.ts";
export type { PlatformTraits, SimulatorOptions } from "./options.ts";

export type { DeviceEvent } from "./phone.ts";
export { seededRandom } from "./random.ts";
export {
  PHRASE_NAMES,
  type Phrases,
  runScenario,
  SCENARIO_NAMES,
  SCENARIOS,
  type ScenarioName,
  type ScenarioOptions,
  type ScenarioReport,
} from "./scenarios/index.ts";
export type { Notification } from "./services/webhook.ts";
export { createSimulator, type Simulator, type SimulatorEvent } from "./simulator.ts";
export type { Profile, Screen } from "./task/screen.ts";
export type { SimulatedTask } from "./task/simulated-task.ts";
export { describeViolation, isNote } from "./violations.ts";
export { withTimeout } from "./waiting.ts";
