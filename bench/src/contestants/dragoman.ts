import { defineAgent, serve } from "dragoman";
import { runContestant } from "./child.ts";
import { type AgentName, chunkText, linkCredentials } from "./protocol.ts";

const about = { description: "Agent under measurement.", version: "1.0.0", skills: [] };

const agents = {
  echo: defineAgent({
    name: "Echo",
    ...about,
    async *run(turn) {
      yield turn.working();
      yield turn.artifact({ name: "echo", parts: turn.parts });
    },
  }),
  stream: defineAgent({
    name: "Stream",
    ...about,
    async *run(turn) {
      yield turn.working();
      yield* turn.stream("text", chunks(Number(turn.text)));
    },
  }),
  hold: defineAgent({
    name: "Hold",
    ...about,
    async *run(turn) {
      yield turn.working();
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    },
  }),
  linger: defineAgent({
    name: "Linger",
    ...about,
    async *run(turn) {
      yield turn.working();
      yield turn.artifact({ name: "echo", parts: turn.parts });
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    },
  }),
  ask: defineAgent({
    name: "Ask",
    ...about,
    async *run(turn) {
      yield turn.inputRequired("And then?");
    },
  }),
} satisfies Record<AgentName, unknown>;

function* chunks(count: number): Generator<string> {
  for (let chunk = 0; chunk < count; chunk++) yield chunkText;
}

await runContestant(async ({ agent, link, store }) => {
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    store,
    agents: { [agent]: agents[agent] },
    log: false,
    ...(link && { xiaoyi: { links: [{ agent, ...linkCredentials, url: link.url }] } }),
    // At this rate chunks would be merged; the other contestants send every one, so Dragoman must, too.
    limits: { mergeAfter: Number.POSITIVE_INFINITY },
  });
  const grpcPort = Number(server.grpc?.split(":").at(-1));
  return { port: server.port, path: `/agents/${agent}`, grpcPort, close: () => server.close() };
});
