export { type BuildOptions, buildAgent, buildAgents } from "./build-agents.ts";
export type { AgentConfig, AgentOverrides, AgentSource, DragomanConfig, Origin } from "./config.ts";
export { type EffectiveValue, effectiveConfig } from "./describe.ts";
export { type ConfigOverrides, environmentFor, loadConfig, type ParseOptions, parseConfig } from "./load.ts";
export { ConfigError, formatProblem, type Problem } from "./problems.ts";
