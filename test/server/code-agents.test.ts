/** Agents that are made in code with the options of a configuration, as their callers see them. */
import { describe, expect, test } from "vitest";
import { connect, textOf } from "../../src/client.ts";
import type { Task } from "../../src/core/model/task.ts";
import { say, startModelServer } from "../../src/features/llm/testing/model-server.ts";
import { createWorkflowAgent, defineAgent, exec, llm, remote, serve, workflow } from "../../src/index.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";

const shout = defineAgent({
  name: "Shout",
  description: "Shouts.",
  async *run(turn) {
    yield turn.artifact({ name: "voice", text: turn.text.toUpperCase() });
  },
});

const twice = {
  name: "Twice",
  steps: {
    loud: { agent: "shout" },
    again: { agent: "upper", needs: ["loud"], input: "${steps.loud.text}, ${input.text}" },
  },
  output: ["again"],
};

async function ask(url: string, agent: string, text: string): Promise<string> {
  return textOf(await (await connect(`${url}/agents/${agent}`)).send(text)).trim();
}

describe("agents made in code", () => {
  test("are served: programs, remote agents, language models and workflows", async () => {
    const elsewhere = await startServer({ agents: { shout } });
    const model = await startModelServer(say("From the model."));
    closeLater(() => model.close());
    const built = workflow("built").step("loud", { agent: "shout" }).build();
    const server = await startServer({
      agents: {
        shout,
        upper: exec(["tr", "[:lower:]", "[:upper:]"], { name: "Upper", timeout: 60_000, env: { A: "b" } }),
        far: remote(`${elsewhere.url}/agents/shout`, { streaming: false, repeatTextInStatus: true }),
        model: llm({ baseUrl: model.baseUrl, model: "m", apiKey: "k", system: "Be brief.", description: "Thinks." }),
        twice: workflow(twice, { description: "Says it twice." }),
        built: workflow(built),
        builder: workflow(workflow("builder").step("loud", { agent: "shout" })),
        older: createWorkflowAgent(built),
      },
    });
    const agents = ["upper", "far", "model", "twice", "built", "builder", "older"];
    const answers = await Promise.all(agents.map((agent) => ask(server.url, agent, "hi")));
    expect(answers).toEqual(["HI", "HI", "From the model.", "HI, HI", "HI", "HI", "HI"]);
    const { task } = (await (await connect(`${server.url}/agents/far`)).send("hi")) as { task: Task };
    expect(textOf(task.status.message?.parts ?? [])).toBe("HI");
    expect(model.requests[0]?.authorization).toBe("Bearer k");
    const cards = await Promise.all(agents.map(async (agent) => (await connect(`${server.url}/agents/${agent}`)).card));
    expect(cards.map(({ name }) => name)).toEqual([
      "Upper",
      expect.stringMatching(/^far$|^Shout$/),
      "model",
      "Twice",
      "built",
      "builder",
      "built",
    ]);
    expect(cards[3]).toMatchObject({ description: "Says it twice." });
  });

  test.each<[string, () => unknown, string]>([
    ["exec", () => exec([]), "exec: exec: must name a program"],
    ["exec", () => exec(["a"], { stdrr: "log" } as object), 'exec: stdrr: unknown key; did you mean "stderr"?'],
    ["exec", () => exec(["a"], { timeout: "soon" }), "exec: timeout: must be"],
    ["remote", () => remote("ftp://x"), "remote: remote: must be an http or https address"],
    ["remote", () => remote("https://x", { credentials: {} }), "remote: credentials: needs one of bearer"],
    ["llm", () => llm({ model: "m" } as never), "llm: baseUrl: "],
    ["llm", () => (llm as () => unknown)(), "llm: "],
    ["llm", () => llm({ baseUrl: "http://x", model: "m", maxTokns: 1 } as never), 'did you mean "maxTokens"?'],
    ["workflow", () => workflow({} as never), "workflow: steps: "],
    [
      "workflow",
      () => workflow({ name: "W", steps: { a: { agent: "x", needs: ["c"] }, b: { agnet: "x" } as object } }),
      'workflow "W": steps.b.agnet: unknown key; did you mean "agent"?',
    ],
    [
      "workflow",
      () => workflow(twice, { tmeout: 1 } as object),
      'workflow: tmeout: unknown key; did you mean "timeout"?',
    ],
    ["createWorkflowAgent", () => createWorkflowAgent(twice as never), "needs a workflow that was built or loaded"],
    ["createWorkflowAgent", () => createWorkflowAgent(undefined as never), "needs a workflow that was built or loaded"],
  ])("%s refuses a mistake where it is made: %#", (_, make, message) => {
    expect(make).toThrow(message);
  });

  test("refuse a server that does not have the agents they name", async () => {
    const flow = workflow({ steps: { a: { agent: "shuot" } } });
    await expect(serve({ agents: { shout, flow }, port: 0 })).rejects.toThrow(
      'agents.flow.workflow: steps.a.agent: there is no agent "shuot"; did you mean "shout"?',
    );
    const model = llm({ baseUrl: "http://127.0.0.1:1/v1", model: "m", agents: ["shuot"] });
    await expect(serve({ agents: { shout, model }, port: 0 })).rejects.toThrow(
      'agents.model.llm.agents[0]: there is no agent "shuot"; did you mean "shout"?',
    );
  });

  test("run as agents of a server only", async () => {
    const server = await startServer({ agents: { shout } });
    expect(() => server.replace("shout", exec(["true"]))).toThrow("replace: takes what defineAgent returns");
  });
});
