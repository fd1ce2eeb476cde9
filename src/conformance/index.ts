export type { Exchange } from "./exchange-log.ts";
export type { MessageCodec } from "./peers/peer-grpc.ts";
export { renderJunit, renderText } from "./render-report.ts";
export type { CheckResult, Group, Report, RequirementResult, Status, Subject, Tally } from "./report.ts";
export {
  BINDINGS,
  type Binding,
  LEVELS,
  type Level,
  REQUIREMENT_IDS,
  REQUIREMENTS,
  type RequirementId,
  VERSIONS,
  type Version,
} from "./requirements/index.ts";
export {
  type ConformanceOptions,
  CredentialsNeeded,
  DEFAULT_PATIENCE_MS,
  DEFAULT_REQUEST_TIMEOUT_MS,
  type Progress,
  runConformance,
} from "./run.ts";
