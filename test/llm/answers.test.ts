/** What a language model answers, as callers see it. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  DONE,
  delta,
  encodeFrames,
  fail,
  hang,
  say,
  stream,
  textFrames,
  usage,
} from "../../src/features/llm/testing/model-server.ts";
import { sendRaw } from "../support/raw-http.ts";
import { statesOf, userMessage } from "../support/wire-client.ts";
import { KEY, reasonOf, serveModel, startModel, textOfTask, USAGE } from "./stage.ts";

const COMPLETED = "TASK_STATE_COMPLETED";
const REASONING = "urn:dragoman:ext:reasoning:v1";

test("the answer is streamed as chunks of one artifact, with the tokens in the task's metadata and in the metrics", async () => {
  const model = await startModel(stream(textFrames("Hello, world.")));
  const { client, server } = await serveModel(model, { llm: "system: Be brief., body: { temperature: 0.5 }" });
  const events = await (await client.stream("Hi")).rest();
  expect(statesOf(events)).toEqual(["SUBMITTED", "WORKING", "COMPLETED"]);
  const chunks = events.flatMap(({ event }) => event.artifactUpdate ?? []);
  expect(chunks.map(({ artifact }) => artifact.parts[0]?.text).join("")).toBe("Hello, world.");
  expect(new Set(chunks.map(({ artifact }) => artifact.artifactId))).toEqual(new Set(["answer"]));
  expect(chunks.map(({ append = false }) => append)).toEqual(chunks.map((_, at) => at > 0));
  expect(chunks.at(-1)?.lastChunk).toBe(true);

  const [request] = model.requests;
  expect(request?.path).toBe("/v1/chat/completions");
  expect(request?.authorization).toBe(`Bearer ${KEY}`);
  expect(request?.body).toEqual({
    model: "test",
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0.5,
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ],
  });
  const task = await client.get(events[0]?.event.task?.id ?? "");
  const expected = { model: "test", requests: 1, promptTokens: 10, completionTokens: 5, totalTokens: 15 };
  expect(task.metadata).toEqual({ [USAGE]: expected });
  const metrics = (await sendRaw(server.url, { path: "/metrics" })).body.toString("utf8");
  expect(metrics).toContain('dragoman_llm_tokens_total{agent="helper",kind="prompt"} 10\n');
  expect(metrics).toContain('dragoman_llm_tokens_total{agent="helper",kind="completion"} 5\n');
});

test("tokens that arrive together are one chunk", async () => {
  const model = await startModel(say("A sentence of many tokens that come in one read."));
  const { client } = await serveModel(model);
  const events = await (await client.stream("Hi")).rest();
  expect(events.filter(({ event }) => event.artifactUpdate !== undefined).length).toBeLessThan(6);
});

test("the same answer comes of a stream that is cut into pieces anywhere", async () => {
  const text = "Zwölf Boxkämpfer 维克多 👩‍🚀 jagen.";
  const frames = textFrames(text);
  const { length } = encodeFrames(frames);
  const model = await startModel();
  const { client } = await serveModel(model);
  const cuts = fc.array(fc.nat(length - 1), { maxLength: 12 }).map((all) => all.sort((a, b) => a - b));
  await fc.assert(
    fc.asyncProperty(cuts, async (positions) => {
      model.script(stream(frames, positions));
      expect(textOfTask(await client.task("Hi"))).toBe(text);
    }),
    { numRuns: 15 },
  );
});

test.each([
  ["reasoning_content", [delta({ reasoning_content: "Hm, " }), delta({ reasoning_content: "well." })]],
  ["reasoning", [delta({ content: "", reasoning: "Hm, well." })]],
  ["tags", [delta({ content: "<thi" }), delta({ content: "nk>Hm, well.</think>\n\n" })]],
])("reasoning in %s is kept apart from the answer", async (_form, reasoning) => {
  const model = await startModel(stream([...reasoning, delta({ content: "Yes." }), delta({}, "stop"), DONE]));
  const { client } = await serveModel(model);
  const task = await client.task("Is it so?");
  expect(textOfTask(task)).toBe("Yes.");
  expect(textOfTask(task, "reasoning")).toBe("");
  const parts = task.artifacts?.find(({ name }) => name === "reasoning")?.parts ?? [];
  expect(parts.map(({ metadata }) => metadata?.[REASONING]).join("")).toBe("Hm, well.");
});

test.each([
  ["a server that does not stream", fail(200, { choices: [{ message: { content: "Yes." }, finish_reason: "stop" }] })],
  ["a stream without its last event", stream([delta({ content: "Yes." }), delta({}, "stop")])],
  ["a stream that stays open after its last event", hang([delta({ content: "Yes." }), DONE])],
  ["comments between events", stream([delta({ content: "Yes" }), "\n: PROCESSING", delta({ content: "." }), DONE])],
])("%s is understood", async (_case, answer) => {
  const model = await startModel(answer);
  const { client } = await serveModel(model, { llm: "attempts: 1" });
  const task = await client.task("Hi");
  expect([task.status.state, textOfTask(task)]).toEqual([COMPLETED, "Yes."]);
  expect(task.metadata?.[USAGE]).toMatchObject({ estimated: true });
});

test("an answer that ends at the limit says so", async () => {
  const model = await startModel(stream(textFrames("Once upon", "length")), stream(textFrames("", "length")));
  const { client } = await serveModel(model, { llm: "maxTokens: 3" });
  const task = await client.task("Tell me a story");
  expect([task.status.state, textOfTask(task)]).toEqual([COMPLETED, "Once upon"]);
  expect(reasonOf(task)).toBe("The answer was cut off at the limit of 3 tokens.");
  expect(model.requests[0]?.body.max_tokens).toBe(3);
  expect((await client.task("Another")).status.state).toBe("TASK_STATE_FAILED");
});

test("members that a server refuses are renamed or left out", async () => {
  const refuse = (message: string) => fail(400, { error: { message } });
  const model = await startModel(
    refuse("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
    refuse("unknown field stream_options"),
    say("Yes."),
    say("Yes."),
  );
  const { client } = await serveModel(model, { llm: "maxTokens: 100" });
  expect(textOfTask(await client.task("Hi"))).toBe("Yes.");
  expect(textOfTask(await client.task("Hi"))).toBe("Yes.");
  const sent = model.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens, body.stream_options]);
  const include = { include_usage: true };
  expect(sent).toEqual([
    [100, undefined, include],
    [undefined, 100, include],
    [undefined, 100, undefined],
    [undefined, 100, undefined],
  ]);
});

const PIXEL = "iVBORw0KGgo=";
const base64 = (text: string) => Buffer.from(text).toString("base64");

test("text files, data and images are given to a model that takes them", async () => {
  const model = await startModel(say("I see."));
  const { client } = await serveModel(model, { llm: "images: true" });
  const parts = [
    { text: "Look:" },
    { data: { a: 1 } },
    { raw: base64("b: 2\n"), mediaType: "application/yaml", filename: "b.yaml" },
    { raw: PIXEL, mediaType: "image/png" },
  ];
  expect(textOfTask(await client.task(userMessage(parts)))).toBe("I see.");
  expect(model.requests[0]?.body.messages).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "Look:" },
        { type: "text", text: '```json\n{\n  "a": 1\n}\n```' },
        { type: "text", text: 'File "b.yaml":\nb: 2\n' },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
      ],
    },
  ]);
});

test.each([
  [{ raw: "/w==", mediaType: "text/plain" }, "This agent does not accept files of type text/plain."],
  [{ url: "http://127.0.0.1:9/a.txt", mediaType: "text/plain" }, "A file of the message could not be fetched."],
])("%j is rejected with a reason, and the model is not asked", async (part, reason) => {
  const model = await startModel();
  const { client } = await serveModel(model);
  const task = await client.task(userMessage([{ text: "Look:" }, part]));
  expect([task.status.state, reasonOf(task)]).toEqual(["TASK_STATE_REJECTED", reason]);
  expect(model.requests).toEqual([]);
});

test.each(["image/png", "application/pdf"])("a file of type %s is refused by a model for text", async (mediaType) => {
  const { client } = await serveModel(await startModel());
  for (const file of [{ raw: PIXEL }, { url: "https://example.com/a" }]) {
    const message = userMessage([{ text: "Look:" }, { ...file, mediaType }]);
    expect((await client.refusal("SendMessage", { message })).reason).toBe("CONTENT_TYPE_NOT_SUPPORTED");
  }
});

test("an empty message is asked about", async () => {
  const model = await startModel(say("Hello."));
  const { client } = await serveModel(model);
  const asked = await client.task("");
  expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  const task = await client.task(userMessage("Hi", { taskId: asked.id }));
  expect([task.status.state, textOfTask(task, "answer-2")]).toEqual([COMPLETED, "Hello."]);
});

test("counts of the server are used, with their details", async () => {
  const details = { completion_tokens_details: { reasoning_tokens: 7 }, prompt_tokens_details: { cached_tokens: 4 } };
  const frames = [delta({ content: "Yes." }), delta({}, "stop"), usage(9, 8, details), DONE];
  const { client } = await serveModel(await startModel(stream(frames)));
  const expected = { promptTokens: 9, completionTokens: 8, reasoningTokens: 7, cachedTokens: 4, totalTokens: 17 };
  expect((await client.task("Hi")).metadata?.[USAGE]).toEqual({ model: "test", requests: 1, ...expected });
});
