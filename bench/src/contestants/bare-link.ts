import { createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { WebSocket } from "ws";
import { runContestant } from "./child.ts";
import { linkCredentials } from "./protocol.ts";

/**
 * The baseline: `ws` that parses the platform's messages and responds, with nothing behind it but a map entry for every
 * conversation. `onlyFinal` sends the whole response in one frame; otherwise it is sent as phones expect it, in the
 * same frames as Dragoman's.
 */
interface Request {
  id: string;
  method: string;
  params: { id: string; sessionId: string; message?: { parts: { text: string }[] } };
}

const { agentId, ak, sk } = linkCredentials;

function dial(url: string): WebSocket {
  const time = String(Date.now());
  const signature = createHmac("sha256", sk).update(time).digest("base64");
  const headers = { "x-access-key": ak, "x-sign": signature, "x-ts": time, "x-agent-id": agentId };
  return new WebSocket(url, { headers, perMessageDeflate: false });
}

function say(socket: WebSocket, { id, params }: Request, result: object): void {
  const { id: taskId, sessionId } = params;
  const detail = { jsonrpc: "2.0", id, result: { taskId, ...result }, error: { code: 0, message: "" } };
  const msgDetail = JSON.stringify(detail);
  socket.send(JSON.stringify({ msgType: "agent_response", agentId, sessionId, taskId, msgDetail }));
}

function status(state: string, final: boolean): object {
  return { kind: "status-update", final, status: { state } };
}

function artifact(part: object, final: boolean): object {
  const artifact = { artifactId: randomUUID(), parts: [part] };
  return { kind: "artifact-update", append: false, lastChunk: true, final, artifact };
}

await runContestant(async ({ agent, link }) => {
  if (link === undefined) throw new Error("bare ws needs a platform to dial");
  const conversations = new Map<string, string>();
  const socket = dial(link.url);
  await once(socket, "open");
  socket.send(JSON.stringify({ msgType: "clawd_bot_init", agentId }));
  socket.on("message", (data: Buffer) => {
    const request: Request = JSON.parse(data.toString());
    const { id: taskId, message, sessionId } = request.params;
    if (request.method === "tasks/cancel") {
      conversations.delete(sessionId);
      return say(socket, request, status("canceled", true));
    }
    conversations.set(sessionId, taskId);
    const text = { kind: "text", text: message?.parts[0]?.text };
    if (link.onlyFinal) return say(socket, request, artifact(text, true));
    say(socket, request, status("working", false));
    say(socket, request, artifact({ kind: "reasoningText", reasoningText: "" }, false));
    say(socket, request, artifact(text, false));
    if (agent === "echo") say(socket, request, status("completed", true));
  });
  // It does not listen on a port.
  return { port: 0, path: "", close: () => socket.terminate() };
});
