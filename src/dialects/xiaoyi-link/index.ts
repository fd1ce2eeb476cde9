export type { OutgoingFile, UploadFile } from "../xiaoyi/uploads.ts";
export { DEFAULT_LINK_TIMES, LinkAgent, type LinkAgentOptions, type LinkTimes } from "./link-agent.ts";
export { DIALECT_NAME } from "./version.ts";
