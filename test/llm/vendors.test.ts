/** Answers of many vendors, whose servers are compatible with OpenAI's in ways of their own. */
import { beforeAll, expect, test } from "vitest";
import { type ModelServer, say } from "../../src/features/llm/testing/model-server.ts";
import type { WireClient } from "../support/wire-client.ts";
import { CHINA } from "./exchanges/china.ts";
import { HOSTED } from "./exchanges/hosted.ts";
import { LOCAL } from "./exchanges/local.ts";
import { OPENAI } from "./exchanges/openai.ts";
import { KEY, reasonOf, serveModel, startModel, textOfTask, USAGE } from "./stage.ts";

const REASONING = "urn:dragoman:ext:reasoning:v1";

let model: ModelServer;
let client: WireClient;

beforeAll(async () => {
  model = await startModel();
  const agents = "  weather: { use: echo }";
  ({ client } = await serveModel(model, { llm: "attempts: 1, agents: [weather]", agents }));
});

test.each([...OPENAI, ...CHINA, ...HOSTED, ...LOCAL])("%s: %s", async (_vendor, _what, sent, expected) => {
  const { body, events = [], status = 200 } = sent;
  const first = model.requests.length;
  model.script((response) => {
    const isStream = body === undefined;
    response.writeHead(status, { "content-type": isStream ? "text/event-stream" : "application/json" });
    const lines = events.map((event) => (typeof event === "string" ? event : `data: ${JSON.stringify(event)}`));
    response.end(isStream ? lines.map((line) => `${line}\n\n`).join("") : JSON.stringify(body));
  });
  if (expected.calls !== undefined) model.script(say("Sunny."));
  const task = await client.task("Hi");

  const { calls, failure, reasoning, text = calls && "Sunny.", usage } = expected;
  const state = failure === undefined ? "TASK_STATE_COMPLETED" : "TASK_STATE_FAILED";
  expect([task.status.state, ...(failure === undefined ? [textOfTask(task)] : [])]).toEqual(
    failure === undefined ? [state, text] : [state],
  );
  if (failure !== undefined) expect(reasonOf(task)).toMatch(failure);
  if (usage !== undefined) expect(task.metadata?.[USAGE]).toMatchObject({ ...usage, requests: 1 });
  if (reasoning !== undefined) {
    const parts = task.artifacts?.find(({ name }) => name === "reasoning")?.parts ?? [];
    expect(parts.map(({ metadata }) => metadata?.[REASONING]).join("")).toBe(reasoning);
  }
  const requests = model.requests.slice(first);
  expect(requests.length).toBe(calls === undefined ? 1 : 2);
  const made = requests[1]?.body.messages.flatMap(({ tool_calls }) => (tool_calls ?? []) as readonly MadeCall[]);
  expect(made?.map(({ function: called }) => [called.name, called.arguments])).toEqual(calls);
  expect(JSON.stringify(task)).not.toContain(KEY);
});

interface MadeCall {
  readonly function: { readonly name: string; readonly arguments: string };
}
