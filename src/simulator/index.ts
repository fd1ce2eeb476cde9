export type { RegisteredAgent } from "./authentication.ts";
export type { CloudOptions } from "./cloud/cloud-platform.ts";
export type { CloudCredentials } from "./cloud/credentials.ts";
export type { ConnectionEvent, Reordering } from "./link/link-platform.ts";
export { DEFAULT_STYLE, type WireStyle } from "./link/wire-format.ts";
export { DEFAULT_TRAITS, type PlatformTraits, type SimulatorOptions } from "./options.ts";
export type { ControlAnswer, Phone, UserFile } from "./phone.ts";
export { type DeviceEvent, executionResult } from "./phone.ts";
export { oneOf, type Random, seededRandom, uuidFrom } from "./random.ts";
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
export { createSimulator, generateAgent, type Simulator, type SimulatorEvent } from "./simulator.ts";
export { PROFILE_NAMES, type Profile, type Screen } from "./task/screen.ts";
export { AGENT_IS_AWAY, type SimulatedTask } from "./task/simulated-task.ts";
export { describeViolation, isNote, RULES, type Rule, type Violation } from "./violations.ts";
