import { createServer } from "node:http";
import { Server as GrpcServer } from "@grpc/grpc-js";
import type { AgentCard } from "a2a-js-sdk-0.3";
import {
  type AgentExecutor,
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "a2a-js-sdk-0.3/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "a2a-js-sdk-0.3/server/express";
import { A2AService, UserBuilder as GrpcUserBuilder, grpcService } from "a2a-js-sdk-0.3/server/grpc";
import express from "express";
import type { StreamEvent } from "../../src/core/model/event.ts";
import { fromV03Message, fromV03Task, toV03Event } from "../interop/v03-conversions.ts";
import { listen, listenGrpc } from "../support/lifecycle.ts";
import { type Publish, TckExecutor, type Turn } from "./tck-executor.ts";

/** The last SDK of 0.3 with everything on: three bindings and push notifications. Returns its URL. */
export async function serveSdkV03(unitMs: number): Promise<string> {
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
    new DefaultPushNotificationSender(pushStore),
  );
  const callers = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/jsonrpc", jsonRpcHandler(callers));
  app.use("/rest", restHandler(callers));
  grpc.addService(A2AService, grpcService({ requestHandler, userBuilder: GrpcUserBuilder.noAuthentication }));
  return url;
}

function cardAt(url: string, grpc: string): AgentCard {
  return {
    protocolVersion: "0.3.0",
    name: "SDK",
    description: "Behaves as conformance checks ask.",
    version: "1.0.0",
    url: `${url}/jsonrpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${url}/jsonrpc`, transport: "JSONRPC" },
      { url: `${url}/rest`, transport: "HTTP+JSON" },
      { url: grpc, transport: "GRPC" },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "tck", name: "Conformance", description: "Does as asked.", tags: ["test"] }],
  };
}

function executor(unitMs: number): AgentExecutor {
  const runs = new TckExecutor(unitMs);
  const contexts = new Map<string, string>();
  return {
    execute({ contextId, task, taskId, userMessage }, bus) {
      contexts.set(taskId, contextId);
      const message = fromV03Message(userMessage) as Turn["message"];
      const known = task === undefined ? undefined : fromV03Task(task);
      const { artifacts = [], history = [] } = known ?? {};
      return runs.execute({ taskId, contextId, message, history, artifacts }, publishTo(bus));
    },
    async cancelTask(taskId, bus) {
      runs.cancel(taskId, publishTo(bus), contexts.get(taskId) ?? "");
    },
  };
}

/** The executor's events are those of 1.0. */
function publishTo(bus: ExecutionEventBus): Publish {
  return (kind, value) => {
    const event: object = { [kind]: value };
    bus.publish(toV03Event(event as StreamEvent));
  };
}
