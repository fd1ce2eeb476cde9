import { createServer } from "node:http";
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { duplicateInterfacesForLegacy } from "@a2a-js/sdk/compat/v0_3";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type User,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server as GrpcServer } from "@grpc/grpc-js";
import express from "express";
import type { Message as ModelMessage } from "../../../src/core/model/message.ts";
import type { Task as ModelTask } from "../../../src/core/model/task.ts";
import { CREDENTIALS } from "../driver.ts";
import type { Gates } from "../gates.ts";
import { bindGrpc, closeAll, listening } from "./listening.ts";
import { PROFILE, type RunningServer, type ServerFeatures } from "./profile.ts";
import { demandOverGrpc, demandOverHttp } from "./require-token.ts";
import { type Publish, Runs } from "./runs.ts";

const LEGACY = { legacyCompat: { enabled: true } };

/** A server made with the SDK of 1.0: all its bindings, each also in 0.3. */
export async function serveSdkV1(features: ServerFeatures, gates: Gates): Promise<RunningServer> {
  const app = express();
  const http = createServer(app);
  const url = await listening(http);
  const grpc = new GrpcServer(features.guarded === true ? { interceptors: [demandOverGrpc] } : {});
  const grpcPort = await bindGrpc(grpc);
  const card = cardAt(url, `127.0.0.1:${grpcPort}`, features);
  const extended = {
    ...card,
    skills: [...card.skills, { ...skillOf(card), ...PROFILE.extendedSkill, tags: ["test"] }],
  };
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor(gates),
    undefined,
    undefined,
    { send: async () => {} },
    extended,
    undefined,
    { validateInputModes: true },
  );
  const userBuilder = async (request: { headers: { authorization?: string | undefined } }) =>
    userOf(request.headers.authorization);
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler, ...LEGACY }));
  if (features.guarded === true) app.use(["/jsonrpc", "/rest"], demandOverHttp);
  app.use("/jsonrpc", jsonRpcHandler({ requestHandler, userBuilder, ...LEGACY }));
  app.use("/rest", restHandler({ requestHandler, userBuilder, ...LEGACY }));
  const callers = {
    requestHandler,
    userBuilder: async (call: { metadata: { get(name: string): (string | Buffer)[] } }) =>
      userOf(String(call.metadata.get("authorization")[0])),
  };
  grpc.addService(A2AService, grpcService(callers));
  grpc.addService(LegacyA2AService, legacyGrpcService(callers));
  return { url, close: () => closeAll(http, grpc) };
}

function cardAt(url: string, grpc: string, features: ServerFeatures): AgentCard {
  const card = AgentCard.fromJSON({
    name: PROFILE.name,
    description: PROFILE.description,
    version: PROFILE.version,
    supportedInterfaces: [
      { url: `${url}/jsonrpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: grpc, protocolBinding: "GRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: features.push, extendedAgentCard: true },
    defaultInputModes: PROFILE.inputModes,
    defaultOutputModes: PROFILE.outputModes,
    skills: [PROFILE.skill],
    ...(features.guarded === true && {
      securitySchemes: { token: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      securityRequirements: [{ schemes: { token: { list: [] } } }],
    }),
  });
  const supportedInterfaces = duplicateInterfacesForLegacy(card.supportedInterfaces, ["JSONRPC", "HTTP+JSON", "GRPC"]);
  return { ...card, supportedInterfaces };
}

function skillOf(card: AgentCard) {
  const [skill] = card.skills;
  if (skill === undefined) throw new Error("The card has no skill.");
  return skill;
}

function userOf(authorization: string | undefined): User {
  const isAuthenticated = authorization === CREDENTIALS.Authorization;
  return { isAuthenticated, userName: isAuthenticated ? "alice" : "" };
}

function executor(gates: Gates): AgentExecutor {
  const runs = new Runs(gates);
  return {
    execute: ({ contextId, task, taskId, userMessage }, bus) => {
      const message = Message.toJSON(userMessage) as ModelMessage;
      const known = task === undefined ? undefined : (Task.toJSON(task) as ModelTask);
      return runs.execute({ taskId, contextId, message, task: known }, publishTo(bus));
    },
    async cancelTask(taskId, bus) {
      runs.cancel(taskId, publishTo(bus));
    },
  };
}

function publishTo(bus: ExecutionEventBus): Publish {
  return (event) => {
    if ("message" in event) bus.publish(AgentEvent.message(Message.fromJSON(event.message)));
    else if ("task" in event) bus.publish(AgentEvent.task(Task.fromJSON(event.task)));
    else if ("statusUpdate" in event) {
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(event.statusUpdate)));
    } else bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event.artifactUpdate)));
  };
}
