import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { JsonObject, JsonValue } from "../../../../core/model/json.ts";

interface ReceivedRequest {
  readonly line: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonValue | undefined;
}

type Reply =
  | readonly [status: number, body?: JsonValue | undefined, headers?: Record<string, string>]
  | ((to: ServerResponse) => void);

/** A server that answers as it is told, by request line; what is not listed does not exist, and says so without ARD's form. */
export async function scriptRegistry(replies: Readonly<Record<string, Reply | readonly Reply[]>>) {
  const received: ReceivedRequest[] = [];
  const counts = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const line = `${request.method} ${request.url}`;
    received.push({ line, headers: request.headers, body: text === "" ? undefined : JSON.parse(text) });
    const planned = replies[line] ?? replies[line.replace(/\?.*/, "")] ?? ([404] as const);
    const count = counts.get(line) ?? 0;
    counts.set(line, count + 1);
    const reply = isReply(planned) ? planned : (planned[Math.min(count, planned.length - 1)] as Reply);
    if (typeof reply === "function") return reply(response);
    const [status, body, headers = {}] = reply;
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body === undefined ? "" : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

function isReply(planned: Reply | readonly Reply[]): planned is Reply {
  return typeof planned === "function" || typeof planned[0] === "number";
}

/** An entry as a registry sends it. */
export function entry(id: string, more: JsonObject = {}): JsonObject {
  return {
    id,
    identifier: `urn:air:example.com:agents:${id}`,
    displayName: id,
    type: "application/a2a-agent-card+json",
    url: `https://example.com/agents/${id}/.well-known/agent-card.json`,
    capabilities: [],
    metadata: { health: "up" },
    ...more,
  };
}
