/** The public door: what agent authors and those who embed the server need. */
export { defineAgent } from "./agents/define.ts";
export { data, file, text } from "./agents/parts.ts";
export type { Agent, AgentEvent, ArtifactDraft, MessageDraft, TurnMemory } from "./engine/agent.ts";
export { ProtocolError } from "./model/errors.ts";
export { SILENT_LOG } from "./model/ports.ts";
export { serve } from "./server/serve.ts";
export { createHandler } from "./server/web-handler.ts";
