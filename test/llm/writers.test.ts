/** The writers with a language model. */
import { expect, test } from "vitest";
import { fail, say } from "../../src/features/llm/testing/model-server.ts";
import { userMessage } from "../support/wire-client.ts";
import { reasonOf, serveModel, startModel, textOfTask, USAGE } from "./stage.ts";

type Model = Awaited<ReturnType<typeof startModel>>;

async function writers(model: Model) {
  const llm = `llm: { baseUrl: "${model.baseUrl}", model: test, attempts: 1 }`;
  const agents = ["outline", "document", "summary"].map((use) => `  ${use}: { use: ${use}, ${llm} }`).join("\n");
  return (await serveModel(model, { agents })).clientOf;
}

const OUTLINE = { topic: "Tea", sections: [{ title: "Origins", points: ["Tea was first drunk in China."] }] };
const promptOf = ({ requests }: Model) => String(requests.at(-1)?.body.messages[0]?.content);
const TEA = "Tea was first drunk in China as a medicine. Monks later carried it to Japan, where it became a ceremony.";

test("the outline has the data that it has without a model", async () => {
  const model = await startModel(say(`\`\`\`json\n${JSON.stringify(OUTLINE)}\n\`\`\``));
  const task = await (await writers(model))("outline").task("Write an outline about tea");
  const parts = task.artifacts?.[0]?.parts ?? [];
  expect(parts[0]?.data).toEqual({ ...OUTLINE, language: "en", basis: "text" });
  expect(parts[1]).toEqual({
    text: "# Tea\n\n## Origins\n\n- Tea was first drunk in China.\n",
    mediaType: "text/markdown",
  });
  expect(promptOf(model)).toContain("JSON object");
  expect(task.metadata?.[USAGE]).toMatchObject({ requests: 1 });
});

test("an outline that cannot be read is replaced by one without the model, which is said", async () => {
  const model = await startModel(say("I would rather write a poem."));
  const task = await (await writers(model))("outline").task(TEA);
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  expect(reasonOf(task)).toBe("The language model's outline could not be read; this one was made without it.");
  expect(JSON.stringify(task.artifacts?.[0]?.parts[0]?.data)).toContain("Monks later carried it to Japan");
});

test("an article is streamed from the outline", async () => {
  const model = await startModel(say("# Tea\n\n## Origins\n\nIt began in China.\n"));
  const parts = [{ text: "Write it out." }, { data: OUTLINE }];
  const events = await (await (await writers(model))("document").stream(userMessage(parts))).rest();
  const chunks = events.flatMap(({ event }) => event.artifactUpdate ?? []);
  expect(chunks.map(({ artifact }) => artifact.parts[0]?.text).join("")).toBe(
    "# Tea\n\n## Origins\n\nIt began in China.\n",
  );
  expect(chunks.at(-1)?.lastChunk).toBe(true);
  expect(model.requests[0]?.body.messages[1]?.content).toContain("Tea was first drunk in China.");
});

test("a summary is in the language of the text, with its data", async () => {
  const model = await startModel(say("茶起源于中国。"));
  const task = await (await writers(model))("summary").task(
    "茶最早在中国作为药物饮用。后来僧人把它带到日本，在那里成为一种仪式。",
  );
  expect(textOfTask(task, "summary")).toBe("茶起源于中国。");
  expect(task.artifacts?.[0]?.parts[1]?.data).toMatchObject({
    language: "zh",
    text: "茶起源于中国。",
    sentences: ["茶起源于中国。"],
    sourceSentences: 2,
  });
  expect(promptOf(model)).toContain("摘要");
});

test.each(["outline", "document", "summary"])(
  "%s asks if it is given nothing, and fails if the model does",
  async (name) => {
    const model = await startModel(fail(401, {}));
    const client = (await writers(model))(name);
    expect((await client.task(" ")).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(model.requests).toEqual([]);
    expect(reasonOf(await client.task(TEA))).toBe("The language model did not accept the configured API key.");
  },
);

test("a card tells who writes", async () => {
  const model = await startModel();
  const { clientOf } = await serveModel(model, {
    agents: `  summary: { use: summary, llm: { baseUrl: "${model.baseUrl}", model: qwen3 } }`,
  });
  const card = await (await fetch(`${clientOf("summary").base}/.well-known/agent-card.json`)).text();
  expect(card).toContain("Written by the language model qwen3");
  expect(card).not.toMatch(/extractive/i);
});
