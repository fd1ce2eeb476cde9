/** What `npm start` serves: the article workflow, called in every dialect, without a network or a key. */
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { serveFile, TOPICS } from "./chain.ts";

const KEYS = { ak: "access-key", sk: "secret-key" };
const server = await serveFile("dragoman.yaml", {}, { xiaoyi: { http: [{ agent: "article", ...KEYS }] } });
const url = `${server.url}/agents/article`;

/** Without gRPC of A2A 0.3, which has no tenants and reaches only the default agent. */
const WAYS = [
  { dialect: "a2a-v1", binding: "JSONRPC" },
  { dialect: "a2a-v1", binding: "HTTP+JSON" },
  { dialect: "a2a-v1", binding: "GRPC" },
  { dialect: "a2a-v03", binding: "JSONRPC" },
  { dialect: "a2a-v03", binding: "HTTP+JSON" },
  { dialect: "a2a-v01", binding: undefined },
  { dialect: "tasks-rest", binding: undefined },
] as const;

describe.each(TOPICS)("the article about $topic", ({ language, note, topic }) => {
  it.each(WAYS)("is written over $dialect $binding", async ({ binding, dialect }) => {
    const agent = await connect(url, { dialect, ...(binding && { binding }) });
    expect(agent.card.name).toBe("article");
    const outcome = await agent.send(topic);
    if ("message" in outcome) throw new Error("It answered without a task.");
    const { artifacts, status } = outcome.task;
    expect(status.state).toBe("TASK_STATE_COMPLETED");
    expect(artifacts?.map(({ name }) => name)).toEqual(["outline", "document", "summary"]);
    expect(artifacts?.[0]?.parts[0]).toMatchObject({ data: { topic, language } });
    expect(artifacts?.[2]?.parts[0]).toMatchObject({ text: expect.stringContaining(note) });
  });

  it("is written over xiaoyi-http", async () => {
    const agent = await connect(`${url}/agent/message`, { dialect: "xiaoyi-http", keys: KEYS });
    const outcome = await agent.send(topic);
    if ("message" in outcome) throw new Error("It answered without a task.");
    const { artifacts = [], status } = outcome.task;
    expect(status.state).toBe("TASK_STATE_COMPLETED");
    const text = artifacts.flatMap(({ parts }) => parts).map((part) => ("text" in part ? part.text : ""));
    expect(text.join("")).toContain(`# ${topic}\n`);
    expect(text.join("")).toContain(note);
  });
});

it("is found on the server beside the agents that it calls", () => {
  expect(server.agents.map(({ name }) => name)).toEqual(["echo", "outline", "document", "summary", "article", "tck"]);
  expect(server.agents.find(({ isDefault }) => isDefault)?.name).toBe("echo");
});
