export type { Exchange } from "./evidence.ts";
export type { MessageCodec } from "./peers/peer-grpc.ts";
export type { CheckResult, Group, Report, RequirementResult, Status, Subject, Tally } from "./report.ts";
export { renderJunit } from "./reports/junit.ts";
export { renderText } from "./reports/text.ts";
export { BINDINGS, type Binding, LEVELS, type Level, VERSIONS, type Version } from "./requirement.ts";
export { REQUIREMENT_IDS, REQUIREMENTS, type RequirementId } from "./requirements.ts";
export {
  type ConformanceOptions,
  CredentialsNeeded,
  DEFAULT_PATIENCE_MS,
  DEFAULT_REQUEST_TIMEOUT_MS,
  type Progress,
  runConformance,
} from "./run.ts";
