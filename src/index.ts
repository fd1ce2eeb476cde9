/** The public door: what agent authors and those who embed the server need. */

import { type ServeOptions as CoreServeOptions, type DragomanServer, serve as serveCore } from "./core/server/serve.ts";
import { createHandler as createCoreHandler, type WebHandler } from "./core/server/web-handler.ts";
import "./features.ts";
import type { FeatureSections } from "./features.ts";

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
export { type CodeAgentOptions, type ExecOptions, exec } from "./core/server/config/code-agents.ts";
export type { DragomanServer } from "./core/server/serve.ts";
export type { WebHandler } from "./core/server/web-handler.ts";
export { type RemoteOptions, remote } from "./features/gateway/code-agent.ts";
export { type LlmAgentOptions, llm } from "./features/llm/code-agent.ts";
export * from "./features/workflow/index.ts";

/** Options of `serve`, with the sections of all features. */
export type ServeOptions = CoreServeOptions & FeatureSections;

/** Starts a server in this process. */
export const serve: (options: ServeOptions) => Promise<DragomanServer> = serveCore;

/**
 * The same server as a web-standard function, for Hono, Next, Bun and Deno. `publicUrl` is required and includes the
 * path it is mounted at. A `Request` does not contain its address, nor does a `Response` show whether it is being read:
 * limits by address and on unread responses are left to the framework's own server.
 */
export const createHandler: (options: ServeOptions & { readonly publicUrl: string }) => Promise<WebHandler> =
  createCoreHandler;
