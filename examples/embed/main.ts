/** A server and a client in one process: serve an agent on a free port, call it, stream its answer, stop. */
import { defineAgent, serve } from "dragoman";
import { connect } from "dragoman/client";

const countdown = defineAgent({
  name: "Countdown",
  description: "A number in, a countdown out.",
  async *run(turn) {
    const from = Number(turn.text);
    if (!Number.isInteger(from) || from < 1) {
      yield turn.rejected("Give me a whole number above zero.");
      return;
    }
    yield* turn.stream("countdown", steps(from));
  },
});

function* steps(from: number): Generator<string> {
  for (let left = from; left > 0; left--) yield `${left} … `;
  yield "lift-off";
}

const server = await serve({ agents: { countdown }, port: 0, store: "memory:" });
try {
  const agent = await connect(`${server.url}/agents/countdown`);
  console.log(`${agent.card.name}, over ${agent.interface.binding}`);

  for await (const { number, event } of agent.stream("3")) {
    if ("artifactUpdate" in event) {
      const text = event.artifactUpdate.artifact.parts.map((part) => ("text" in part ? part.text : "")).join("");
      console.log(`event ${number}: ${text}`);
    }
    if ("statusUpdate" in event) console.log(`event ${number}: ${event.statusUpdate.status.state}`);
  }

  const outcome = await agent.send("soon");
  if ("task" in outcome) console.log(`"soon": ${outcome.task.status.state}`);

  for await (const task of agent.list()) console.log(`kept: ${task.status.state}`);
} finally {
  await server.close();
}
