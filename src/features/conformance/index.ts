export type { MessageCodec } from "./peers/peer-grpc.ts";
export { renderJunit } from "./render-junit.ts";
export { renderMarkdown } from "./render-markdown.ts";
export { renderText } from "./render-report.ts";
export type { Report, Status } from "./report.ts";
export {
  BINDINGS,
  LEVELS,
  REQUIREMENT_IDS,
  REQUIREMENTS,
  VERSIONS,
  type Version,
} from "./requirements.ts";
export {
  type ConformanceOptions,
  CredentialsNeeded,
  type Progress,
  runConformance,
} from "./run.ts";
