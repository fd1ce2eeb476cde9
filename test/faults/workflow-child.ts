/** The process that is killed: runs workflows whose steps are elsewhere and here. */
import { createWorkflowAgent, defineAgent, serve } from "dragoman";
import { twentySteps } from "./twenty-steps.ts";

const [file = ""] = process.argv.slice(2);

const here = defineAgent({
  name: "Here",
  description: "Is killed with the workflow, and resumed.",
  onCrash: "resume",
  async *run(turn) {
    yield turn.artifact({ name: "text", text: "[" });
    yield turn.artifact({ name: "text", text: `${turn.text}]`, append: true });
  },
});

const server = await serve({
  agents: { flow: createWorkflowAgent({ workflow: twentySteps(process.env.WORKERS_URL ?? "") }), here },
  store: `sqlite:${file}`,
  port: 0,
  grpcPort: false,
  limits: { attempts: 1_000 },
});
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
