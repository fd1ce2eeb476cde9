import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type AgentCard, type Artifact, type Part, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type RequestContext,
  type TaskStore,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { A2AService, UserBuilder as GrpcUserBuilder, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import express from "express";
import { openPostgresTaskStore } from "./a2a-js-postgres-store.ts";
import { openSqliteTaskStore } from "./a2a-js-sqlite-store.ts";
import { runContestant } from "./child.ts";
import { type AgentName, chunkText, requestedChunks } from "./protocol.ts";

type Execute = (context: RequestContext, bus: ExecutionEventBus) => Promise<void>;

const executes: Partial<Record<AgentName, Execute>> = { echo, stream, hold };

async function echo(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
  publishWorking(context, bus);
  publishArtifact(context, bus, artifactOf("echo", context.userMessage.parts), false, true);
  publishCompleted(context, bus);
}

async function stream(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
  const content = context.userMessage.parts[0]?.content;
  const { count, pauseMillis } = requestedChunks(content?.$case === "text" ? content.value : "");
  const artifact = artifactOf("text", [textPart(chunkText)]);
  publishWorking(context, bus);
  for (let chunk = 0; chunk < count; chunk++) {
    if (pauseMillis > 0) await pause(pauseMillis);
    publishArtifact(context, bus, { ...artifact }, chunk > 0, chunk === count - 1);
  }
  publishCompleted(context, bus);
}

function hold(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
  publishWorking(context, bus);
  return new Promise(() => {});
}

function statusOf(state: TaskState) {
  return { state, message: undefined, timestamp: new Date().toISOString() };
}

function textPart(value: string): Part {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" };
}

function artifactOf(name: string, parts: Part[]): Artifact {
  return { artifactId: randomUUID(), name, description: "", parts, metadata: undefined, extensions: [] };
}

function publishWorking({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): void {
  const status = statusOf(TaskState.TASK_STATE_WORKING);
  bus.publish(
    AgentEvent.task({ id: taskId, contextId, status, artifacts: [], history: [userMessage], metadata: undefined }),
  );
}

function publishArtifact(
  { taskId, contextId }: RequestContext,
  bus: ExecutionEventBus,
  artifact: Artifact,
  append: boolean,
  lastChunk: boolean,
): void {
  bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }));
}

function publishCompleted({ taskId, contextId }: RequestContext, bus: ExecutionEventBus): void {
  const status = statusOf(TaskState.TASK_STATE_COMPLETED);
  bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
}

function cardOf(name: string, pushNotifications: boolean): AgentCard {
  return {
    name,
    description: "Agent under measurement.",
    supportedInterfaces: [
      { url: "http://127.0.0.1/a2a/jsonrpc", protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" },
      { url: "127.0.0.1", protocolBinding: "GRPC", tenant: "", protocolVersion: "1.0" },
    ],
    provider: undefined,
    version: "1.0.0",
    capabilities: { streaming: true, pushNotifications, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
}

async function openTaskStore(store: string): Promise<TaskStore> {
  if (store === "memory:") return new InMemoryTaskStore();
  if (store.startsWith("postgres:")) return openPostgresTaskStore(store);
  return openSqliteTaskStore(store.slice("sqlite:".length));
}

await runContestant(async ({ agent, push = false, store }) => {
  const execute = executes[agent];
  if (!execute) throw new Error(`a2a-js has no agent "${agent}"`);
  const executor: AgentExecutor = { execute, cancelTask: async () => {} };
  const taskStore = await openTaskStore(store);
  const requestHandler = new DefaultRequestHandler(
    cardOf(agent, push),
    taskStore,
    executor,
    undefined,
    push ? new InMemoryPushNotificationStore() : undefined,
  );
  const app = express();
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/a2a/jsonrpc", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const grpc = new Server();
  grpc.addService(A2AService, grpcService({ requestHandler, userBuilder: GrpcUserBuilder.noAuthentication }));
  const grpcPort = await new Promise<number>((resolve, reject) => {
    grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const close = () => {
    grpc.forceShutdown();
    server.closeAllConnections();
  };
  return { port, path: "/a2a/jsonrpc", grpcPort, close };
});
