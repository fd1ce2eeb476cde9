export { buildAgent, buildAgents } from "./build-agents.ts";
export { type DragomanConfig, findUnusedCluster } from "./config.ts";
export { effectiveConfig } from "./describe.ts";
export { type ConfigOverrides, environmentFor, loadConfig } from "./load.ts";
