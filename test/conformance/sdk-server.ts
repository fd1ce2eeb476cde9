import { createServer } from "node:http";
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { duplicateInterfacesForLegacy } from "@a2a-js/sdk/compat/v0_3";
import { createLegacyAwarePushNotificationSender } from "@a2a-js/sdk/compat/v0_3/server";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { A2AService, UserBuilder as GrpcUserBuilder, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server as GrpcServer } from "@grpc/grpc-js";
import express from "express";
import { listen, listenGrpc } from "../support/lifecycle.ts";
import { type Publish, TckExecutor, type Turn } from "./tck-executor.ts";

const LEGACY = { legacyCompat: { enabled: true } };

/** The official SDK with everything on: three bindings, each also in 0.3, and push notifications. Returns its URL. */
export async function serveSdk(unitMs: number): Promise<string> {
  const app = express();
  const http = createServer(app);
  const url = `http://127.0.0.1:${await listen(http)}`;
  const grpc = new GrpcServer();
  const card = cardAt(url, `127.0.0.1:${await listenGrpc(grpc)}`);
  const pushStore = new InMemoryPushNotificationStore();
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor(unitMs),
    undefined,
    pushStore,
    createLegacyAwarePushNotificationSender(pushStore),
  );
  const callers = { requestHandler, userBuilder: UserBuilder.noAuthentication, ...LEGACY };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler, ...LEGACY }));
  app.use("/jsonrpc", jsonRpcHandler(callers));
  app.use("/rest", restHandler(callers));
  const rpcCallers = { requestHandler, userBuilder: GrpcUserBuilder.noAuthentication };
  grpc.addService(A2AService, grpcService(rpcCallers));
  grpc.addService(LegacyA2AService, legacyGrpcService(rpcCallers));
  return url;
}

function cardAt(url: string, grpc: string): AgentCard {
  const card = AgentCard.fromJSON({
    name: "SDK",
    description: "Behaves as conformance checks ask.",
    version: "1.0.0",
    supportedInterfaces: [
      { url: `${url}/jsonrpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: grpc, protocolBinding: "GRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "tck", name: "Conformance", description: "Does as asked.", tags: ["test"] }],
  });
  const supportedInterfaces = duplicateInterfacesForLegacy(card.supportedInterfaces, ["JSONRPC", "HTTP+JSON", "GRPC"]);
  return { ...card, supportedInterfaces };
}

function executor(unitMs: number): AgentExecutor {
  const runs = new TckExecutor(unitMs);
  const contexts = new Map<string, string>();
  return {
    execute({ contextId, task, taskId, userMessage }, bus) {
      contexts.set(taskId, contextId);
      const message = Message.toJSON(userMessage) as Turn["message"];
      const history = task?.history.map((said) => Message.toJSON(said)) ?? [];
      const artifacts = task === undefined ? [] : ((Task.toJSON(task) as { artifacts?: unknown[] }).artifacts ?? []);
      return runs.execute({ taskId, contextId, message, history, artifacts }, publishTo(bus));
    },
    async cancelTask(taskId, bus) {
      runs.cancel(taskId, publishTo(bus), contexts.get(taskId) ?? "");
    },
  };
}

function publishTo(bus: ExecutionEventBus): Publish {
  return (kind, value) => {
    if (kind === "message") bus.publish(AgentEvent.message(Message.fromJSON(value)));
    else if (kind === "task") bus.publish(AgentEvent.task(Task.fromJSON(value)));
    else if (kind === "statusUpdate") bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(value)));
    else bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(value)));
  };
}
