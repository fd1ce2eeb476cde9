export { buildAgent, buildAgents } from "./build-agents.ts";
export type { DragomanConfig } from "./config.ts";
export { effectiveConfig } from "./describe.ts";
export { type ConfigOverrides, environmentFor, loadConfig } from "./load.ts";
export { sectionWarnings } from "./sections.ts";
