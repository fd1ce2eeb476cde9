import { createWorkflowAgent, defineAgent, serve, workflow } from "dragoman";
import { runContestant } from "./child.ts";
import { chainLengths, chainSteps } from "./protocol.ts";

const about = { description: "Agent under measurement.", version: "1.0.0", skills: [] };

const echo = defineAgent({
  name: "Echo",
  ...about,
  async *run(turn) {
    yield turn.working();
    yield turn.artifact({ name: "echo", parts: turn.parts });
  },
});

/** Waits until it is opened by a message, which is also answered with how many tasks waited. */
function createGate() {
  let waiting: (() => void)[] = [];
  return defineAgent({
    name: "Gate",
    ...about,
    async *run(turn) {
      yield turn.working();
      if (turn.text === "count" || turn.text === "open") {
        yield turn.artifact({ name: "waiting", parts: [{ text: `waiting: ${waiting.length}.` }] });
        if (turn.text === "count") return;
        for (const open of waiting) open();
        waiting = [];
        return;
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
      yield turn.artifact({ name: "echo", parts: turn.parts });
    },
  });
}

/** Each step gets the text of the one before. */
function chain(steps: readonly string[], agentOf: (step: string) => string) {
  let built = workflow("chain").step(steps[0]!, { agent: agentOf(steps[0]!) });
  for (const [index, step] of steps.entries()) {
    const before = steps[index - 1];
    if (before === undefined) continue;
    built = built.step(step, { agent: agentOf(step), needs: [before], input: `\${steps.${before}.text}` });
  }
  return built;
}

const named = (count: number) => Array.from({ length: count }, (_, index) => `step-${index}`);

const workflows = {
  chain: chain(chainSteps, (step) => step).output(...chainSteps),
  each: workflow("each").step("all", { agent: "echo", foreach: "${input.data}", input: "${item}" }),
  waiting: chain(["before", "gate", "after"], (step) => (step === "gate" ? step : "echo")),
  ...Object.fromEntries(chainLengths.map((length) => [`chain-${length}`, chain(named(length), () => "echo")])),
};

await runContestant(async ({ store }) => {
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    store,
    agents: {
      echo,
      gate: createGate(),
      ...Object.fromEntries(chainSteps.map((step) => [step, echo])),
      ...Object.fromEntries(
        Object.entries(workflows).map(([name, built]) => [name, createWorkflowAgent({ workflow: built.build() })]),
      ),
    },
    log: false,
  });
  return { port: server.port, path: "/agents", close: () => server.close() };
});
