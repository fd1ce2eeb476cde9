import { setTimeout as pause } from "node:timers/promises";
import { defineAgent, serve } from "dragoman";
import { runContestant } from "./child.ts";
import { type AgentName, chunkText, linkCredentials, requestedChunks } from "./protocol.ts";

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
      const { count, pauseMillis } = requestedChunks(turn.text);
      yield* turn.stream("text", pauseMillis === 0 ? chunks(count) : pacedChunks(count, pauseMillis));
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

async function* pacedChunks(count: number, pauseMillis: number): AsyncGenerator<string> {
  for (let chunk = 0; chunk < count; chunk++) {
    await pause(pauseMillis);
    yield chunkText;
  }
}

await runContestant(async ({ agent, beside, link, options, store }) => {
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    store,
    agents: { [agent]: agents[agent], ...(beside && { [beside]: agents[beside] }) },
    log: false,
    ...(link && { xiaoyi: { links: [{ agent, ...linkCredentials, url: link.url }] } }),
    // At this rate chunks would be merged; the other contestants send every one, so Dragoman must, too.
    limits: { mergeAfter: Number.POSITIVE_INFINITY },
    ...options,
  });
  const grpcPort = Number(server.grpc?.split(":").at(-1));
  return { port: server.port, path: `/agents/${agent}`, grpcPort, close: () => server.close() };
});
