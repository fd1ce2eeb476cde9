export { oneOf, type Random, seededRandom, uuidFrom } from "./chance.ts";
export type { CloudOptions } from "./cloud/cloud-platform.ts";
export type { CloudCredentials } from "./cloud/credentials.ts";
export type { RegisteredAgent } from "./link/admission.ts";
export type { ConnectionEvent, Reordering } from "./link/link-platform.ts";
export { USUAL_STYLE, type WireStyle } from "./link/wire-style.ts";
export { DEFAULT_TRAITS, type PlatformTraits, type SimulatorOptions } from "./options.ts";
export type { ControlAnswer } from "./phone/channel.ts";
export { type DeviceEvent, executionResult } from "./phone/parts.ts";
export type { Phone, UserFile } from "./phone/phone.ts";
export {
  PHRASE_NAMES,
  type Phrases,
  runScenario,
  SCENARIO_NAMES,
  SCENARIOS,
  type ScenarioName,
  type ScenarioReport,
  type SceneOptions,
} from "./scenarios/index.ts";
export type { Notification } from "./services/notification.ts";
export { createSimulator, inventAgent, type Simulator, type SimulatorEvent } from "./simulator.ts";
export { PROFILE_NAMES, type Profile, type Screen } from "./task/screen.ts";
export { AGENT_IS_AWAY, type SimulatedTask } from "./task/simulated-task.ts";
export { describeViolation, isNote, RULES, type Rule, type Violation } from "./violations.ts";
