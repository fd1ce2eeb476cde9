import { createServer } from "node:http";
import { Server as GrpcServer } from "@grpc/grpc-js";
import type { AgentCard } from "a2a-js-sdk-0.3";
import { type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from "a2a-js-sdk-0.3/server";
import { agentCardHandler, jsonRpcHandler, restHandler } from "a2a-js-sdk-0.3/server/express";
import { A2AService, grpcService } from "a2a-js-sdk-0.3/server/grpc";
import express from "express";
import { CREDENTIALS } from "../driver.ts";
import type { Gates } from "../gates.ts";
import { fromV03Message, fromV03Task, toV03Event } from "../v03-conversions.ts";
import { bindGrpc, closeAll, listening } from "./listening.ts";
import { PROFILE, type RunningServer, type ServerFeatures } from "./profile.ts";
import { demandOverGrpc, demandOverHttp } from "./require-token.ts";
import { Runs } from "./runs.ts";

/** A server made with the last SDK of 0.3. */
export async function serveSdkV03(features: ServerFeatures, gates: Gates): Promise<RunningServer> {
  const app = express();
  const http = createServer(app);
  const url = await listening(http);
  const grpc = new GrpcServer(features.guarded === true ? { interceptors: [demandOverGrpc] } : {});
  const card = cardAt(url, `127.0.0.1:${await bindGrpc(grpc)}`, features);
  const extended: AgentCard = { ...card, skills: [...card.skills, { ...PROFILE.extendedSkill, tags: ["test"] }] };
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor(gates),
    undefined,
    undefined,
    { send: async () => {} },
    extended,
  );
  const userOf = (authorization: string | undefined) => {
    const isAuthenticated = authorization === CREDENTIALS.Authorization;
    return { isAuthenticated, userName: isAuthenticated ? "alice" : "" };
  };
  const byHeader = {
    requestHandler,
    userBuilder: async ({ headers }: { headers: { authorization?: string | undefined } }) =>
      userOf(headers.authorization),
  };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  if (features.guarded === true) app.use(["/jsonrpc", "/rest"], demandOverHttp);
  app.use("/jsonrpc", jsonRpcHandler(byHeader));
  app.use("/rest", restHandler(byHeader));
  grpc.addService(
    A2AService,
    grpcService({
      requestHandler,
      userBuilder: async ({ metadata }) => userOf(String(metadata.get("authorization")[0])),
    }),
  );
  return { url, close: () => closeAll(http, grpc) };
}

function cardAt(url: string, grpc: string, features: ServerFeatures): AgentCard {
  return {
    protocolVersion: "0.3.0",
    name: PROFILE.name,
    description: PROFILE.description,
    version: PROFILE.version,
    url: `${url}/jsonrpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${url}/jsonrpc`, transport: "JSONRPC" },
      { url: `${url}/rest`, transport: "HTTP+JSON" },
      { url: grpc, transport: "GRPC" },
    ],
    capabilities: { streaming: true, pushNotifications: features.push },
    supportsAuthenticatedExtendedCard: true,
    defaultInputModes: [...PROFILE.inputModes],
    defaultOutputModes: [...PROFILE.outputModes],
    skills: [{ ...PROFILE.skill, tags: ["test"] }],
    ...(features.guarded === true && {
      securitySchemes: { token: { type: "http", scheme: "Bearer" } },
      security: [{ token: [] }],
    }),
  };
}

function executor(gates: Gates): AgentExecutor {
  const runs = new Runs(gates);
  return {
    execute: async ({ contextId, task, taskId, userMessage }, bus) => {
      const message = fromV03Message(userMessage);
      const known = task === undefined ? undefined : fromV03Task(task);
      await runs.execute({ taskId, contextId, message, task: known }, (event) => bus.publish(toV03Event(event)));
    },
    async cancelTask(taskId, bus) {
      runs.cancel(taskId, (event) => bus.publish(toV03Event(event)));
    },
  };
}
