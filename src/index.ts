/** The public door: what agent authors and those who embed the server need. */

export type { AgentDefinition, SkillDefinition } from "./agents/define.ts";
export { defineAgent } from "./agents/define.ts";
export type { AgentTurn, ArtifactOptions } from "./agents/turn.ts";
export {
  createWorkflowAgent,
  readProgress,
  type StepProgress,
  type WorkflowAgentOptions,
} from "./agents/workflow/index.ts";
export { GuardedFetchError, type GuardedFetchErrorCode } from "./auth/guarded-fetch/errors.ts";
export { createGuardedFetch, type GuardedFetchOptions } from "./auth/guarded-fetch/guarded-fetch.ts";
export { bytesOf, type Content, data, file, text, textOf } from "./client/parts.ts";
export type { Agent, AgentEvent, ArtifactDraft, ConversationMemory, MessageDraft, TurnMemory } from "./engine/agent.ts";
export type { Caller } from "./model/caller.ts";
export { type ErrorCode, ProtocolError } from "./model/errors.ts";
export type { Message, Part } from "./model/message.ts";
export { type Log, SILENT_LOG } from "./model/ports.ts";
export type { Task } from "./model/task.ts";
export {
  type CodeAgentOptions,
  type ExecOptions,
  exec,
  type LlmAgentOptions,
  llm,
  type RemoteOptions,
  remote,
  workflow,
} from "./server/config/code-agents.ts";
export { type DragomanServer, type ServeOptions, serve } from "./server/serve.ts";
export { createHandler, type WebHandler } from "./server/web-handler.ts";
export { loadWorkflow, type StepDefinition, type WorkflowBuilder, type WorkflowDefinition } from "./workflow/index.ts";
export type { Step, Workflow } from "./workflow/plan.ts";
