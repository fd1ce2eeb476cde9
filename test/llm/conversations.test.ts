/** What a language model is reminded of, and what it is not. */
import { expect, test } from "vitest";
import { say } from "../../src/features/llm/testing/model-server.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { createFolder } from "../support/lifecycle.ts";
import { userMessage, WireClient } from "../support/wire-client.ts";
import { serveModel, startModel } from "./stage.ts";

type Model = Awaited<ReturnType<typeof startModel>>;

const lastMessages = ({ requests }: Model) =>
  requests.at(-1)?.body.messages.map(({ content, role }) => `${role}: ${content}`);

test("earlier messages of a context and their answers precede the next, in any of its tasks", async () => {
  const model = await startModel(say("Hello, Ann."), say("Ann."), say("Who?"));
  const { client } = await serveModel(model, { llm: "system: Be brief." });
  const { contextId } = await client.task("I am Ann.");
  await client.task(userMessage("Who am I?", { contextId }));
  expect(lastMessages(model)).toEqual([
    "system: Be brief.",
    "user: I am Ann.",
    "assistant: Hello, Ann.",
    "user: Who am I?",
  ]);
  await client.task("Who am I?");
  expect(lastMessages(model)).toEqual(["system: Be brief.", "user: Who am I?"]);
});

test("another owner and another agent have conversations of their own, under the same id", async () => {
  const model = await startModel(say("Hello."), say("?"), say("?"));
  const auth = { apiKeys: ["alice", "bob"].map((owner) => ({ key: `key-of-${owner}-0123456789`, owner })) };
  const agents = `  other: { llm: { baseUrl: "${model.baseUrl}", model: test } }`;
  const { server } = await serveModel(model, { agents, options: { auth } });
  const send = (owner: string, agent: string, text: string) =>
    new WireClient(HTTP_BINDINGS[0], `${server.url}/agents/${agent}`).task(
      userMessage(text, { contextId: "shared" }),
      {},
      { "x-api-key": `key-of-${owner}-0123456789` },
    );
  await send("alice", "helper", "I am Alice.");
  await send("bob", "helper", "Who am I?");
  expect(lastMessages(model)).toEqual(["user: Who am I?"]);
  await send("alice", "other", "Who am I?");
  expect(lastMessages(model)).toEqual(["user: Who am I?"]);
});

test("as much of a conversation is sent as fits, the newest first", async () => {
  const answers = Array.from({ length: 12 }, (_, index) => say(`Answer ${index}. ${"word ".repeat(20)}`));
  const model = await startModel(...answers);
  const { client } = await serveModel(model, { llm: "maxContextTokens: 200" });
  const { contextId } = await client.task("Question 0.");
  for (let index = 1; index < 12; index++) await client.task(userMessage(`Question ${index}.`, { contextId }));
  const messages = lastMessages(model) ?? [];
  expect(messages.at(-1)).toBe("user: Question 11.");
  expect(messages.at(-2)).toContain("Answer 10.");
  expect(messages.length).toBeGreaterThan(3);
  expect(messages.join("").length / 4).toBeLessThan(200);
  expect(messages.some((message) => message.includes("Question 0"))).toBe(false);
});

test("a message that is longer than what may be remembered is sent whole, and remembered by its beginning", async () => {
  const model = await startModel(say("Long."), say("Yes."));
  const { client } = await serveModel(model, { llm: "maxContextTokens: 100" });
  const long = "很长的消息。".repeat(100);
  const { contextId } = await client.task(long);
  expect(lastMessages(model)).toEqual([`user: ${long}`]);
  await client.task(userMessage("Was it long?", { contextId }));
  const [first = "", ...rest] = lastMessages(model) ?? [];
  expect(rest).toEqual(["assistant: Long.", "user: Was it long?"]);
  expect(long.startsWith(first.slice("user: ".length))).toBe(true);
  expect(first.length).toBeLessThan(100);
});

test("a conversation is remembered by the next process", async () => {
  const store = `sqlite:${createFolder()}/data.db`;
  const model = await startModel(say("Hello, Ann."), say("Ann."));
  const first = await serveModel(model, { options: { store } });
  const { contextId } = await first.client.task("I am Ann.");
  await first.server.close();
  const second = await serveModel(model, { options: { store } });
  await second.client.task(userMessage("Who am I?", { contextId }));
  expect(lastMessages(model)).toEqual(["user: I am Ann.", "assistant: Hello, Ann.", "user: Who am I?"]);
});
