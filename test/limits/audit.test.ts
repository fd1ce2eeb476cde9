import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ProtocolError } from "../../src/model/errors.ts";
import { type DragomanServer, type ServeOptions, serve } from "../../src/server/serve.ts";
import { Stage } from "../support/stage.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

const TOKEN = "planted-token-91ab";
const CONTENT = "planted-content-77cd";

const authenticate: NonNullable<ServeOptions["authenticate"]> = ({ headers }) => {
  if (headers.authorization === `Bearer ${TOKEN}`) return { owner: "alice", authenticated: true };
  throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
};

interface Line {
  readonly owner?: string;
  readonly operation: string;
  readonly task?: string;
  readonly result: string;
  readonly ms?: number;
}

let folder: string;
let server: DragomanServer;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "audited-"));
  server = await serve({
    port: 0,
    log: false,
    agents: { stage: new Stage().agent() },
    authenticate,
    baseDirectory: folder,
    audit: { file: "audit.jsonl" },
    times: { drainMs: 0 },
  });
});
afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** 0.1 and 0.3 share methods and name no version: without a task to tell by, 0.3 answers. */
const withoutTask = (dialect: string) => (dialect === "a2a-v01" ? "a2a-v03" : dialect);

/** Whole once the server is closed. */
async function audited(): Promise<{ text: string; lines: readonly Line[] }> {
  await server.close();
  const text = await readFile(join(folder, "audit.jsonl"), "utf8");
  return {
    text,
    lines: text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  };
}

describe.each(INTERFACES)("$dialect over $binding", (spoken) => {
  it("leaves a record of who did what to which task, from where, and how it ended", async () => {
    const agent = await speaking(server.url, spoken, { headers: { authorization: `Bearer ${TOKEN}` } });
    const outcome = await agent.send(`artifact ${CONTENT}`);
    const id = "task" in outcome ? outcome.task.id : "none";
    let streamed = "none";
    for await (const { event } of agent.stream(`artifact ${CONTENT}`)) {
      if ("task" in event) streamed = event.task.id;
      if ("statusUpdate" in event) streamed = event.statusUpdate.taskId;
    }
    await agent.get(id);
    await expect(agent.get("missing")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    const { text, lines } = await audited();
    const common = {
      owner: "alice",
      authenticated: true,
      address: "127.0.0.1",
      agent: "stage",
      dialect: spoken.dialect,
      ms: expect.any(Number),
    };
    const unknown = { ...common, dialect: withoutTask(spoken.dialect) };
    expect(lines).toEqual([
      { time: expect.stringMatching(/^\d{4}-.*Z$/), ...common, operation: "send", task: id, result: "OK" },
      { time: expect.any(String), ...common, operation: "stream", task: streamed, result: "OK" },
      { time: expect.any(String), ...common, operation: "get", task: id, result: "OK" },
      { time: expect.any(String), ...unknown, operation: "get", task: "missing", result: "TASK_NOT_FOUND" },
    ]);
    expect(text).not.toMatch(new RegExp(`${TOKEN}|${CONTENT}`));
  });

  it("leaves a record of callers who were not let in", async () => {
    const agent = await speaking(server.url, spoken, { headers: { authorization: "Bearer planted-guess-00" } });
    await expect(agent.send("artifact ok")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    const { text, lines } = await audited();
    expect(lines).toEqual([
      {
        time: expect.any(String),
        authenticated: false,
        address: "127.0.0.1",
        // Over gRPC the agent is named in the message, which is not read.
        ...(spoken.binding !== "GRPC" && { agent: "stage" }),
        dialect: spoken.dialect,
        operation: "authenticate",
        result: "UNAUTHENTICATED",
      },
    ]);
    expect(text).not.toContain("planted");
  });
});

it("that cannot be opened is an error only where it is required", async () => {
  const options = { port: 0, log: false as const, agents: { stage: new Stage().agent() } };
  const file = join(folder, "no", "such", "folder.jsonl");
  await expect(serve({ ...options, audit: { file, required: true } })).rejects.toThrow("audit");
  const lenient = await serve({ ...options, audit: { file } });
  const [v1] = INTERFACES;
  if (v1 === undefined) throw new Error("No interface.");
  const agent = await speaking(lenient.url, v1);
  expect(await agent.send("artifact ok")).toHaveProperty("task");
  await lenient.close();
});
