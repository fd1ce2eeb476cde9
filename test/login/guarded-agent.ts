/** An agent that wants tokens, and says so on its card. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { Caller } from "../../src/core/model/caller.ts";
import type { SecurityRequirement } from "../../src/core/model/card.ts";
import type { JsonObject } from "../../src/core/model/json.ts";
import { createHandler } from "../../src/index.ts";

export interface GuardedAgentOptions {
  readonly authenticate: (headers: Readonly<Record<string, string | undefined>>, query: URLSearchParams) => Caller;
  readonly securitySchemes: Readonly<Record<string, JsonObject>>;
  readonly securityRequirements?: readonly SecurityRequirement[];
}

export interface GuardedAgent {
  readonly url: string;
  /** Requests other than for the card. */
  readonly requests: { readonly authorization: string | undefined; readonly path: string }[];
  /** Replaces members of the card. */
  card: JsonObject;
  close(): Promise<void>;
}

export async function startGuardedAgent(options: GuardedAgentOptions): Promise<GuardedAgent> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let query = new URLSearchParams();
  const handler = await createHandler({
    agents: { who: whoAmI },
    publicUrl: url,
    authenticate: ({ headers }) => options.authenticate(headers, query),
  });
  const agent: GuardedAgent = {
    url,
    requests: [],
    card: {},
    async close() {
      await closeServer(server);
      await handler.close();
    },
  };
  const { securityRequirements, securitySchemes } = options;
  const names = Object.keys(securitySchemes);
  const security = {
    securitySchemes,
    securityRequirements: securityRequirements ?? names.map((name) => ({ schemes: { [name]: { list: [] } } })),
  };
  server.on("request", async (request, response) => {
    const asked = await toRequest(request, url);
    const isCard = new URL(asked.url).pathname.endsWith("/agent-card.json");
    if (!isCard) agent.requests.push({ authorization: request.headers.authorization, path: request.url ?? "" });
    query = new URL(asked.url).searchParams;
    const answer = await handler(asked);
    if (!isCard) return void send(response, answer);
    const card = { ...((await answer.json()) as JsonObject), ...security, ...agent.card };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(card));
  });
  return agent;
}

const whoAmI = defineAgent({
  name: "Who am I",
  description: "Tells who is calling.",
  async *run(turn) {
    yield turn.working("Looking");
    yield turn.artifact({ name: "caller", parts: [{ text: `You are ${turn.caller.owner}.` }] });
  },
});

async function toRequest(request: IncomingMessage, origin: string): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = Object.entries(request.headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
  return new Request(new URL(request.url ?? "/", origin), { method: request.method ?? "GET", headers, ...body });
}

function send(response: ServerResponse, answer: Response): void {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) response.end();
  else Readable.fromWeb(answer.body).pipe(response);
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
