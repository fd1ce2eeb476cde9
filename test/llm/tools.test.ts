/** Agents as tools of a language model. */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { Agent } from "../../src/core/engine/agent.ts";
import { call, DONE, delta, say, stream, usage } from "../../src/features/llm/testing/model-server.ts";
import { createFolder } from "../support/lifecycle.ts";
import { userMessage } from "../support/wire-client.ts";
import { reasonOf, serveModel, startModel, textOfTask, USAGE } from "./stage.ts";

const COMPLETED = "TASK_STATE_COMPLETED";
const ECHO = "  echo: { use: echo }";
const ask = (id: string, text: string, name = "echo") => ({ id, name, arguments: { text } });

type Model = Awaited<ReturnType<typeof startModel>>;
const resultsOf = ({ requests }: Model, at = -1) =>
  requests.at(at)?.body.messages.flatMap(({ content, role }) => (role === "tool" ? [content] : []));

function agentOf(run: Parameters<typeof defineAgent>[0]["run"]): Agent {
  return defineAgent({ name: "Other", description: "Does what a test says.", run });
}

test("the model calls an agent as a task of its own, and answers with the result", async () => {
  const model = await startModel(call(ask("a", "ping"), ask("b", "pong")), say("It said ping and pong."));
  const { client, clientOf } = await serveModel(model, { agents: ECHO, llm: "agents: [echo]" });
  const task = await client.task("Ask echo.");
  expect([task.status.state, textOfTask(task)]).toEqual([COMPLETED, "It said ping and pong."]);
  const [first, second] = model.requests;
  expect(first?.body.tools).toMatchObject([
    {
      type: "function",
      function: { name: "echo", description: expect.stringContaining("Sends back what it is sent") },
    },
  ]);
  expect(second?.body.messages.slice(1)).toMatchObject([
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "a", type: "function", function: { name: "echo", arguments: '{"text":"ping"}' } },
        { id: "b", type: "function", function: { name: "echo", arguments: '{"text":"pong"}' } },
      ],
    },
    { role: "tool", tool_call_id: "a", content: "ping" },
    { role: "tool", tool_call_id: "b", content: "pong" },
  ]);
  const { tasks } = await clientOf("echo").list({ contextId: task.contextId, historyLength: 1 });
  expect(tasks.map(({ history }) => history?.[0]?.parts[0]?.text).sort()).toEqual(["ping", "pong"]);
  expect(tasks[0]?.history?.[0]).toMatchObject({ referenceTaskIds: [task.id] });
  expect(task.metadata?.[USAGE]).toMatchObject({ requests: 2, promptTokens: 30 });
});

test("data is passed both ways, and what the model writes beside a call is shown", async () => {
  const frames = [
    delta({ content: "Let me look." }),
    delta({
      tool_calls: [{ index: 0, id: "a", function: { name: "echo", arguments: { text: "x", data: { n: 1 } } } }],
    }),
    delta({}, "stop"),
    DONE,
  ];
  const model = await startModel(stream(frames), say("Found."));
  const { client } = await serveModel(model, { agents: ECHO, llm: "agents: [echo]" });
  expect(textOfTask(await client.task("Go"))).toBe("Let me look.\n\nFound.");
  expect(resultsOf(model)).toEqual(['x\n\n{"n":1}']);
});

test.each([
  [
    "an agent that is not there",
    { id: "a", name: "nobody", arguments: { text: "x" } },
    /no tool nobody; there are echo/,
  ],
  ["no message", { id: "a", name: "echo", arguments: {} }, /`text` is missing/],
])("the model is told that it called %s", async (_case, wrong, told) => {
  const model = await startModel(call(wrong), say("Sorry."));
  const { client } = await serveModel(model, { agents: ECHO, llm: "agents: [echo]" });
  expect((await client.task("Go")).status.state).toBe(COMPLETED);
  expect(resultsOf(model)?.[0]).toMatch(told);
});

test("arguments that are not JSON are returned to the model", async () => {
  const broken = { index: 0, id: "a", function: { name: "echo", arguments: '{"text": ' } };
  const model = await startModel(
    stream([delta({ tool_calls: [broken] }, "tool_calls"), usage(1, 1), DONE]),
    say("Sorry."),
  );
  const { client } = await serveModel(model, { agents: ECHO, llm: "agents: [echo]" });
  await client.task("Go");
  expect(resultsOf(model)).toEqual(["The arguments must be a JSON object with a string `text`."]);
});

test.each([
  ["failed", () => Promise.reject(new Error("secret")), /^The agent's task ended as failed\. The agent failed/],
  ["answers with a message", () => "Just a message.", /^Just a message\.$/],
  ["says nothing", () => undefined, /^Done, without a result\.$/],
])("the model is told when an agent %s", async (_case, run, told) => {
  const model = await startModel(call(ask("a", "x", "other")), say("I see."));
  const agents = { other: agentOf(run) };
  const { client } = await serveModel(model, {
    agents: "  other: { use: echo }",
    llm: "agents: [other]",
    options: { agents },
  });
  expect(textOfTask(await client.task("Go"))).toBe("I see.");
  expect(resultsOf(model)?.[0]).toMatch(told);
});

test("an agent that returns more than anyone can use is stopped, and the model is told", async () => {
  const model = await startModel(call(ask("a", "x", "other")), say("I see."));
  const chunk = "x".repeat(1024 * 1024);
  let chunks = 0;
  const other = agentOf(async function* (turn) {
    while (!turn.signal.aborted && chunks < 60) {
      yield turn.artifact({ name: "flood", text: chunk, append: chunks++ > 0 });
      await setImmediate();
    }
  });
  const { client, clientOf } = await serveModel(model, {
    agents: "  other: { use: echo }",
    llm: "agents: [other]",
    options: { agents: { other } },
  });
  expect(textOfTask(await client.task("Go"))).toBe("I see.");
  expect(resultsOf(model)).toEqual([
    "The agent's task ended as failed. The agent returned more than 16777216 characters.",
  ]);
  expect(chunks).toBeLessThan(60);
  const { tasks } = await clientOf("other").list({});
  expect(tasks.map(({ status }) => status.state)).toEqual(["TASK_STATE_CANCELED"]);
});

test("calls are limited, and after the last one the model has to answer", async () => {
  const model = await startModel(call(ask("a", "1"), ask("b", "2"), ask("c", "3")), say("Enough."));
  const { client } = await serveModel(model, { agents: ECHO, llm: "agents: [echo], maxToolCalls: 2" });
  expect(textOfTask(await client.task("Go"))).toBe("Enough.");
  expect(resultsOf(model)).toEqual(["1", "2", "No more calls are possible. Answer with what you know."]);
  expect(model.requests.map(({ body }) => body.tool_choice)).toEqual([undefined, "none"]);
});

test("a model that does not stop calling fails the task", async () => {
  const model = await startModel(call(ask("a", "1")), call(ask("b", "2")));
  const { client } = await serveModel(model, { agents: ECHO, llm: "agents: [echo], maxToolCalls: 1" });
  const task = await client.task("Go");
  expect(reasonOf(task)).toBe("The language model called other agents more than 1 times.");
});

test("calls are limited over all agents that a message leads to", async () => {
  const calls = (agent: string) => call(...Array.from({ length: 16 }, (_, at) => ask(`${at}`, "x", agent)));
  const model = await startModel();
  const agents = `${ECHO}\n  helper2: { llm: { baseUrl: "${model.baseUrl}", model: test, agents: [echo] } }`;
  const { client } = await serveModel(model, { agents, llm: "agents: [helper2]" });
  model.script(calls("helper2"));
  for (let run = 0; run < 16; run++) model.script(calls("echo"), say("Done."));
  model.script(say("All done."));
  expect(textOfTask(await client.task("Go"))).toBe("All done.");
  // The last run of the second agent may call no one any more: 16 runs and the calls of 15 of them are 256.
  const refused = model.requests.map(({ body }) => JSON.stringify(body).split("No more calls are possible").length - 1);
  expect(refused.filter((count) => count > 0)).toEqual([16]);
});

test("tokens of all requests together are limited", async () => {
  const model = await startModel(call(ask("a", "1")), say("Fine."));
  const { client } = await serveModel(model, { agents: ECHO, llm: "agents: [echo], maxTokens: 5" });
  expect(reasonOf(await client.task("Go"))).toBe("The answer was cut off at the limit of 5 tokens.");
  expect(model.requests.map(({ body }) => body.max_tokens)).toEqual([5]);
});

test("agents that call each other in a circle are stopped", async () => {
  const again = () => call(ask("a", "again", "helper2"));
  const model = await startModel();
  const llm = `baseUrl: "${model.baseUrl}", model: test`;
  const agents = `  helper2: { llm: { ${llm}, agents: [helper] } }`;
  const { client } = await serveModel(model, {
    agents,
    llm: "agents: [helper2]",
    config: "limits: { hops: 3 }",
    options: { limits: { hops: 3 } },
  });
  model.script(again(), call(ask("a", "again", "helper")), again(), call(ask("a", "again", "helper")));
  model.script(say("4"), say("3"), say("2"), say("1"));
  expect(textOfTask(await client.task("Go"))).toBe("1");
  const refused = model.requests.flatMap(({ body }) => body.messages.map(({ content }) => String(content)));
  expect(refused.some((content) => content.includes("more than the 3 allowed"))).toBe(true);
});

const asking = agentOf(async function* (turn) {
  if (turn.history.length === 0) yield turn.inputRequired("Which colour?");
  else yield turn.artifact({ name: "choice", text: `You chose ${turn.text}.` });
});

test("the question of an agent is asked of the caller, whose reply goes to that agent", async () => {
  const model = await startModel(call(ask("a", "paint", "other")), say("Painted red."));
  const options = { agents: { other: asking } };
  const { client, clientOf } = await serveModel(model, {
    agents: "  other: { use: echo }",
    llm: "agents: [other]",
    options,
  });
  const asked = await client.task("Paint it.");
  expect([asked.status.state, reasonOf(asked)]).toEqual(["TASK_STATE_INPUT_REQUIRED", "Which colour?"]);
  const task = await client.task(userMessage("red", { taskId: asked.id }));
  expect([task.status.state, textOfTask(task)]).toEqual([COMPLETED, "Painted red."]);
  expect(resultsOf(model)).toEqual(["You chose red."]);
  expect(model.requests.at(-1)?.body.messages[0]).toEqual({ role: "user", content: "Paint it." });
  const { tasks } = await clientOf("other").list();
  expect(tasks.map(({ status }) => status.state)).toEqual([COMPLETED]);
});

test("cancelling a task that waits for a reply cancels the agent's task, too", async () => {
  const model = await startModel(call(ask("a", "paint", "other")));
  const options = { agents: { other: asking } };
  const { client, clientOf } = await serveModel(model, {
    agents: "  other: { use: echo }",
    llm: "agents: [other]",
    options,
  });
  const { id } = await client.task("Paint it.");
  await client.cancel(id);
  const [child] = (await clientOf("other").list()).tasks;
  expect((await clientOf("other").ended(child?.id ?? "")).status.state).toBe("TASK_STATE_CANCELED");
});

test("cancelling reaches the agent that is being called", async () => {
  let stopped = () => {};
  const stop = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  let began = () => {};
  const begin = new Promise<void>((resolve) => {
    began = resolve;
  });
  const slow = agentOf(async function* (turn) {
    yield turn.working();
    began();
    await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
    stopped();
  });
  const model = await startModel(call(ask("a", "x", "other")));
  const options = { agents: { other: slow } };
  const { client } = await serveModel(model, { agents: "  other: { use: echo }", llm: "agents: [other]", options });
  const { id } = await client.start("Go");
  await begin;
  expect((await client.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
  await stop;
});

test("after a crash, calls that were answered are not repeated", async () => {
  const store = `sqlite:${createFolder()}/data.db`;
  let runs = 0;
  const counting = agentOf(() => `Run ${++runs}.`);
  const agents = "  other: { use: echo }";
  let reached = () => {};
  const second = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const model = await startModel(call(ask("a", "x", "other")), () => reached());
  const options = { store, agents: { other: counting } };
  const first = await serveModel(model, { agents, llm: "agents: [other]", options });
  const { id } = await first.client.start("Go");
  await second;
  // The tasks that run are cut off, as they are when a process dies.
  await first.server.close();
  model.script(say("It ran once."));
  const { client } = await serveModel(model, { agents, llm: "agents: [other]", options });
  const task = await client.ended(id);
  expect([task.status.state, textOfTask(task), runs]).toEqual([COMPLETED, "It ran once.", 1]);
  expect(resultsOf(model)).toEqual(["Run 1."]);
});
