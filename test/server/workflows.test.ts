/** A workflow of a configuration, as its callers see it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { EXTENSIONS } from "../../src/core/model/extensions.ts";
import { buildAgents, loadConfig } from "../../src/core/server/config/index.ts";
import { createFolder, startServer } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";

const elsewhere = await startServer({
  grpcPort: false,
  agents: {
    shout: defineAgent({
      name: "Shout",
      description: "Shouts.",
      async *run(turn) {
        if (turn.text === "") {
          yield turn.inputRequired("What?");
          return;
        }
        yield turn.working("Taking a breath.");
        yield turn.artifact({ name: "voice", text: turn.text.toUpperCase() });
      },
    }),
  },
});

const CONFIG = `
agents:
  echo: { use: echo }
  shouting: { workflow: flow.yaml, timeout: 1m }
  asking:
    workflow:
      name: Asking
      steps:
        ask: { url: ${elsewhere.url}, input: { text: "" } }
        say: { agent: echo, input: { text: "\${steps.ask.text} (\${input.text})" }, needs: [ask] }
`;
const FLOW = `
name: Shouting
description: Says it twice, once aloud.
steps:
  quiet: { agent: echo }
  loud: { url: ${elsewhere.url}, needs: [quiet], input: { text: "\${steps.quiet.text}!" } }
output: [loud, quiet]
`;

async function configure(config: string, flow = FLOW) {
  const folder = createFolder();
  writeFileSync(join(folder, "dragoman.yaml"), config);
  writeFileSync(join(folder, "flow.yaml"), flow);
  return Object.fromEntries(await buildAgents(await loadConfig(join(folder, "dragoman.yaml"), {})));
}

const server = await startServer({ grpcPort: false, agents: await configure(CONFIG) });
const JSON_BODY = { "content-type": "application/json" };

/** A request of A2A 1.0 over JSON-RPC. */
async function call(agent: string, method: string, params: object) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { ...JSON_BODY, "a2a-version": "1.0" };
  return sendRaw(`${server.url}/agents/${agent}`, { headers, body });
}

const messageOf = (text: string, more: object = {}) => ({
  messageId: "m",
  role: "ROLE_USER",
  parts: [{ text }],
  ...more,
});

test("is served over A2A 1.0, with the artifacts of its output steps", async () => {
  const { json } = await call("shouting", "SendMessage", { message: messageOf("hello") });
  const { artifacts, status } = json.result.task;
  expect(status.state).toBe("TASK_STATE_COMPLETED");
  expect(artifacts).toMatchObject([
    { artifactId: "quiet", name: "quiet", parts: [{ text: "hello" }] },
    { artifactId: "loud", name: "loud", parts: [{ text: "HELLO!" }] },
  ]);
});

test("streams its steps over A2A 1.0", async () => {
  const { text } = await call("shouting", "SendStreamingMessage", { message: messageOf("hello") });
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data).result);
  const steps = events.flatMap(({ statusUpdate }) => {
    const progress = statusUpdate?.status.message?.metadata?.[EXTENSIONS.workflow];
    return progress === undefined ? [] : [progress];
  });
  expect(steps).toMatchObject([
    { step: "quiet", state: "started", agent: "echo", dialect: "local", attempt: 1 },
    { step: "quiet", state: "completed" },
    { step: "loud", state: "started", agent: `${elsewhere.url}/`, dialect: "a2a-v1" },
    { step: "loud", state: "working" },
    { step: "loud", state: "completed", task: expect.stringMatching(/./) },
  ]);
  expect(events.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.name ?? [])).toContain("loud");
});

test("is served over tasks-rest", async () => {
  const body = JSON.stringify({ message: { role: "user", parts: [{ type: "text", text: "hello" }] } });
  const { json } = await sendRaw(`${server.url}/agents/shouting/tasks/send`, { headers: JSON_BODY, body });
  expect(json.status.state).toBe("completed");
  expect(json.artifacts).toMatchObject([
    { name: "quiet", parts: [{ type: "text", text: "hello" }] },
    { name: "loud", parts: [{ type: "text", text: "HELLO!" }] },
  ]);
});

test("has a card with its name, its description and the extension", async () => {
  const headers = { "a2a-version": "1.0" };
  const path = `${server.url}/agents/shouting/.well-known/agent-card.json`;
  const { json } = await sendRaw(path, { method: "GET", headers });
  expect(json).toMatchObject({ name: "Shouting", description: "Says it twice, once aloud." });
  expect(json.capabilities.extensions).toContainEqual(expect.objectContaining({ uri: EXTENSIONS.workflow }));
});

test("asks what one of its agents asks, and goes on with the answer", async () => {
  const asked = await call("asking", "SendMessage", { message: messageOf("hello") });
  const { id, status } = asked.json.result.task;
  expect(status).toMatchObject({ state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "What?" }] } });
  const { json } = await call("asking", "SendMessage", { message: messageOf("tea", { messageId: "n", taskId: id }) });
  expect(json.result.task.artifacts).toMatchObject([{ name: "say", parts: [{ text: "TEA (hello)" }] }]);
});

test.each([
  [
    "an unknown agent in a file",
    "agents: { echo: { use: echo }, a: { workflow: flow.yaml } }",
    "steps:\n  one: { agent: ecko }\n",
    /flow\.yaml:2:3: steps\.one\.agent: there is no agent "ecko"; did you mean "echo"\?$/,
  ],
  [
    "an unknown agent inside the configuration",
    "agents:\n  echo: { use: echo }\n  a:\n    workflow: { steps: { one: { agent: ecko } } }\n",
    "",
    /dragoman\.yaml:4:26: steps\.one\.agent: there is no agent "ecko"/,
  ],
  [
    "a cycle",
    "agents: { a: { workflow: flow.yaml } }",
    "steps:\n  one: { agent: a, needs: [two] }\n  two: { agent: a, needs: [one] }\n",
    /flow\.yaml:2:3: .*need each other/,
  ],
  ["a file that is not there", "agents: { a: { workflow: none.yaml } }", "", /none\.yaml: .*not found/],
  ["a list", "agents: { a: { workflow: [] } }", "", /dragoman\.yaml:1:26: agents\.a\.workflow: must be a file or/],
])("%s is reported with its place", async (_name, config, flow, expected) => {
  await expect(configure(config, flow)).rejects.toThrow(expected);
});
