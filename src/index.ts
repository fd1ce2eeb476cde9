/** The public door: what agent authors and those who embed the server need. */

export type { AgentDefinition, SkillDefinition } from "./core/agents/define.ts";
export { defineAgent } from "./core/agents/define.ts";
export type { AgentTurn, ArtifactOptions } from "./core/agents/turn.ts";
export { GuardedFetchError, type GuardedFetchErrorCode } from "./core/auth/guarded-fetch/errors.ts";
export { createGuardedFetch, type GuardedFetchOptions } from "./core/auth/guarded-fetch/guarded-fetch.ts";
export { bytesOf, type Content, data, file, text, textOf } from "./core/client/parts.ts";
export type {
  Agent,
  AgentEvent,
  ArtifactDraft,
  ConversationMemory,
  MessageDraft,
  TurnMemory,
} from "./core/engine/agent.ts";
export type { Caller } from "./core/model/caller.ts";
export { type ErrorCode, ProtocolError } from "./core/model/errors.ts";
export type { Message, Part } from "./core/model/message.ts";
export { type Log, SILENT_LOG } from "./core/model/ports.ts";
export type { Task } from "./core/model/task.ts";
export {
  type CodeAgentOptions,
  type ExecOptions,
  exec,
  type LlmAgentOptions,
  llm,
  type RemoteOptions,
  remote,
  workflow,
} from "./core/server/config/code-agents.ts";
export { type DragomanServer, type ServeOptions, serve } from "./core/server/serve.ts";
export { createHandler, type WebHandler } from "./core/server/web-handler.ts";
export {
  createWorkflowAgent,
  readProgress,
  type StepProgress,
  type WorkflowAgentOptions,
} from "./features/workflow/agent/index.ts";
export {
  loadWorkflow,
  type StepDefinition,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from "./features/workflow/definition/index.ts";
export type { Step, Workflow } from "./features/workflow/definition/plan.ts";
