/** What callers see when a language model fails, and what is tried before. */
import { expect, test } from "vitest";
import {
  cut,
  delta,
  encodeFrames,
  fail,
  hang,
  say,
  stream,
  textFrames,
} from "../../src/features/llm/testing/model-server.ts";
import { freePort } from "../support/lifecycle.ts";
import { KEY, reasonOf, serveModel, startModel, textOfTask, USAGE } from "./stage.ts";

const COMPLETED = "TASK_STATE_COMPLETED";
const FAILED = "TASK_STATE_FAILED";

test.each([
  ["too many requests", fail(429, { error: { message: "slow down" } }, { "retry-after": "0" })],
  ["too many requests, in milliseconds", fail(429, "", { "retry-after-ms": "1" })],
  ["an error of the server", fail(500, "oops")],
  ["a gateway without a server", fail(502, "<html>")],
  ["a connection that breaks before anything was shown", cut([delta({ role: "assistant", content: "" })])],
  ["a stream that ends before anything was shown", stream([delta({ role: "assistant" })])],
  ["an error in the stream", stream([{ error: { message: "overloaded" } }])],
  ["an event that is not JSON", stream(["{"])],
  ["a body that is not JSON", fail(200, "{")],
])("%s is followed by another try", async (_case, failure) => {
  const model = await startModel(failure, say("Yes."));
  const { client } = await serveModel(model);
  const task = await client.task("Hi");
  expect([task.status.state, textOfTask(task)]).toEqual([COMPLETED, "Yes."]);
  expect(model.requests.length).toBe(2);
});

const BUSY = "The language model is busy; please try again in 3600 s.";

test.each([
  ["a pause that is too long", fail(429, {}, { "retry-after": "3600" }), BUSY],
  [
    "a date that is too far",
    fail(429, {}, { "retry-after": "Fri, 31 Dec 2100 00:00:00 GMT" }),
    /try again in \d+ s\.$/,
  ],
  ["an account without credit", fail(429, { error: { code: "insufficient_quota" } }), /HTTP status 429/],
  [
    "a wrong key",
    fail(401, { error: { message: `Incorrect API key provided: ${KEY}` } }),
    /did not accept the configured/,
  ],
  [
    "a request that it does not understand",
    fail(400, { error: { message: `This model's context is 4096 tokens. ${KEY} sk-other-9999` } }),
    "The language model answered with HTTP status 400. This model's context is 4096 tokens. *** ***",
  ],
  ["a model that does not exist", fail(404, { error: "model 'test' not found" }), /404. model 'test' not found$/],
  ["a redirect", fail(307, "", { location: "http://127.0.0.1:9/" }), /HTTP status 307/],
  ["too many tokens, told in the stream", stream([{ error: { code: 400, message: "too long" } }]), /400. too long$/],
  ["a content filter", stream(textFrames("", "content_filter")), /content filter/],
  ["nothing", stream(textFrames("")), "The language model gave no answer."],
])("%s ends the task with a reason, without another try", async (_case, failure, reason) => {
  const model = await startModel(failure, say("Yes."));
  const { client } = await serveModel(model);
  const task = await client.task("Hi");
  expect(task.status.state).toBe(FAILED);
  expect(reasonOf(task)).toMatch(reason);
  expect(JSON.stringify(task)).not.toContain(KEY);
  expect(model.requests.length).toBe(1);
});

test("tries end, and the last reason is told", async () => {
  const model = await startModel(fail(500, "a"), fail(503, "b"), say("Too late."));
  const { client } = await serveModel(model, { llm: "attempts: 2" });
  const task = await client.task("Hi");
  expect(reasonOf(task)).toBe("The language model answered with HTTP status 503.");
  expect(model.requests.length).toBe(2);
});

test.each([
  ["a broken connection", cut(textFrames("Once upon").slice(0, 3)), "could not be reached"],
  ["the end of the stream", stream(textFrames("Once upon").slice(0, 3)), "broke off"],
  ["an error in the stream", stream([...textFrames("Once upon").slice(0, 3), { error: {} }]), "reported an error"],
])("after %s in the middle, what was received is kept and not asked for again", async (_case, failure, reason) => {
  const model = await startModel(failure, say("Yes."));
  const { client } = await serveModel(model);
  const task = await client.task("Tell me a story");
  expect([task.status.state, textOfTask(task)]).toEqual([FAILED, "Once u"]);
  expect(reasonOf(task)).toContain(reason);
  expect(model.requests.length).toBe(1);
});

test("a model that is not there fails the task", async () => {
  const port = await freePort();
  const model = { ...(await startModel()), baseUrl: `http://127.0.0.1:${port}/v1` };
  const { client } = await serveModel(model, { llm: "attempts: 1" });
  const task = await client.task("Hi");
  expect([task.status.state, reasonOf(task)]).toEqual([FAILED, "The language model could not be reached."]);
  expect(JSON.stringify(task)).not.toContain(String(port));
});

test.each([
  ["sends nothing", hang([])],
  ["stops in the middle", hang([delta({ role: "assistant" })])],
])("a model that %s is given up", async (_case, silence) => {
  const model = await startModel(silence);
  const { client } = await serveModel(model, { llm: "attempts: 1, idleTimeout: 100ms" });
  expect(reasonOf(await client.task("Hi"))).toBe("The language model sent nothing for 1 s.");
  await model.left;
});

test("an answer without an end is limited", async () => {
  const model = await startModel(hang([delta({ content: "na ".repeat(1_000) })], true));
  const { client } = await serveModel(model, { config: "limits: { part: 64KiB }" });
  const task = await client.task("Sing");
  expect([task.status.state, reasonOf(task)]).toEqual([FAILED, "The language model's answer was too long."]);
  await model.left;
});

test("a line without an end is limited", async () => {
  const endless = encodeFrames([delta({ content: "x".repeat(200_000) })])
    .toString("latin1")
    .trimEnd();
  const model = await startModel((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(endless);
  });
  const { client } = await serveModel(model, { config: "limits: { part: 64KiB }" });
  expect(reasonOf(await client.task("Hi"))).toBe("The language model's answer was too long.");
  await model.left;
});

test("cancelling stops the request", async () => {
  const model = await startModel(hang([delta({ content: "Once" })]));
  const { client } = await serveModel(model);
  const stream = await client.stream("Tell me a story");
  const { id } = await stream.task();
  for (let event = await stream.event(); event.artifactUpdate === undefined; event = await stream.event());
  const task = await client.cancel(id);
  expect(task.status.state).toBe("TASK_STATE_CANCELED");
  await model.left;
  expect(textOfTask(await client.get(id))).toBe("Once");
});

test("cancelling stops the wait for another try", async () => {
  const model = await startModel(fail(429, {}, { "retry-after": "30" }));
  const { client } = await serveModel(model);
  const { id } = await client.start("Hi");
  expect((await client.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
});

test("a failed task has the tokens of the requests that were answered", async () => {
  const { client } = await serveModel(await startModel(stream(textFrames("", "content_filter"))));
  expect((await client.task("Hi")).metadata?.[USAGE]).toMatchObject({ promptTokens: 10 });
});
