import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { runContestant } from "./child.ts";
import { type AgentName, chunkText, requestedChunks } from "./protocol.ts";

/**
 * The baseline: `node:http` that parses the request and responds as an agent server would, with no
 * protocol behind it. Handlers are inline because the TypeScript runner wraps named inner functions at every call.
 */
interface SendRequest {
  id: number;
  params: {
    message: { messageId: string; role: string; parts: { text: string }[] };
    configuration?: { historyLength?: number };
  };
}

type Answer = (request: SendRequest, response: ServerResponse) => void | Promise<void>;

const answers: Partial<Record<AgentName, Answer>> = { echo, stream, hold };

function echo(request: SendRequest, response: ServerResponse): void {
  const { message, configuration } = request.params;
  const body = Buffer.from(
    JSON.stringify({
      jsonrpc: "2.0",
      id: request.id,
      result: {
        task: {
          id: randomUUID(),
          contextId: randomUUID(),
          status: { state: "TASK_STATE_COMPLETED", timestamp: new Date().toISOString() },
          artifacts: [{ artifactId: randomUUID(), name: "echo", parts: message.parts }],
          ...(configuration?.historyLength !== 0 && { history: [message] }),
        },
      },
    }),
  );
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
  response.end(body);
}

async function stream(request: SendRequest, response: ServerResponse): Promise<void> {
  const taskId = randomUUID();
  const contextId = randomUUID();
  const artifactId = randomUUID();
  const { count, pauseMillis } = requestedChunks(request.params.message.parts[0]?.text ?? "");
  openEvents(response);
  writeEvent(response, request.id, {
    task: { id: taskId, contextId, status: { state: "TASK_STATE_WORKING", timestamp: new Date().toISOString() } },
  });
  for (let chunk = 0; chunk < count; chunk++) {
    if (pauseMillis > 0) await pause(pauseMillis);
    const artifact = { artifactId, name: "text", parts: [{ text: chunkText }] };
    const lastChunk = chunk === count - 1;
    writeEvent(response, request.id, { artifactUpdate: { taskId, contextId, artifact, append: chunk > 0, lastChunk } });
  }
  const status = { state: "TASK_STATE_COMPLETED", timestamp: new Date().toISOString() };
  writeEvent(response, request.id, { statusUpdate: { taskId, contextId, status } });
  response.end();
}

function hold(request: SendRequest, response: ServerResponse): void {
  openEvents(response);
  writeEvent(response, request.id, { task: { id: randomUUID(), status: { state: "TASK_STATE_WORKING" } } });
}

function openEvents(response: ServerResponse): void {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
}

function writeEvent(response: ServerResponse, id: number, result: unknown): void {
  response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
}

function handle(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => answer(JSON.parse(Buffer.concat(pieces).toString()), response));
}

await runContestant(async ({ agent }) => {
  const answer = answers[agent];
  if (!answer) throw new Error(`bare node:http has no agent "${agent}"`);
  const server = createServer((request, response) => handle(request, response, answer));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, path: "/", close: () => server.closeAllConnections() };
});
