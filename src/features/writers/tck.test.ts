import { describe, expect, it } from "vitest";
import { runToEnd, statesOf, turnOf } from "../../core/agents/testing/turns.ts";
import type { Message } from "../../core/model/message.ts";
import { createTckAgent } from "./tck.ts";

const agent = createTckAgent({ streamingTimeoutMs: 1 });
const said = (messageId: string, text = "hi"): Message => ({ messageId, role: "ROLE_USER", parts: [{ text }] });

describe("the conformance agent", () => {
  it.each([
    ["tck-complete-task", ["COMPLETED"]],
    ["tck-delayed-complete", ["WORKING", "COMPLETED"]],
    ["tck-artifact-text", ["COMPLETED"]],
    ["tck-input-required", ["INPUT_REQUIRED"]],
    ["tck-auth-required", ["AUTH_REQUIRED"]],
    ["tck-reject-task", ["REJECTED"]],
    ["tck-task-failure", ["FAILED"]],
    ["tck-multi-turn", ["INPUT_REQUIRED"]],
    ["tck-long-running", ["WORKING", "COMPLETED"]],
    ["tck-stream-001", ["WORKING", "COMPLETED"]],
    ["tck-stream-002", ["COMPLETED"]],
    ["tck-stream-artifact-chunked", ["WORKING", "COMPLETED"]],
    ["test-resubscribe-message-id", ["WORKING", "COMPLETED"]],
    ["test-cancel-message-id", ["WORKING", "INPUT_REQUIRED"]],
    ["test-message-id-", ["WORKING", "INPUT_REQUIRED"]],
    ["text-message-id-", ["WORKING", "INPUT_REQUIRED"]],
    ["mapping-test-message-id-", ["WORKING", "INPUT_REQUIRED"]],
    ["test-resilience-message-id-", ["WORKING", "INPUT_REQUIRED"]],
    ["tck-something-new", ["COMPLETED"]],
    ["6f1e", ["COMPLETED"]],
  ])("answers %s by id and by text", async (prefix, states) => {
    const byId = await runToEnd(agent, { messageId: `${prefix}-1a2b3c4d`, text: "hi" });
    expect(statesOf(byId.events)).toEqual(states);
    const byText = await runToEnd(agent, { messageId: "x", text: `${prefix} please` });
    expect(statesOf(byText.events)).toEqual(states);
  });

  it.each([
    ["tck-artifact-text", { text: "Generated text content" }],
    [
      "tck-artifact-file-url",
      { url: "https://example.com/output.txt", filename: "output.txt", mediaType: "text/plain" },
    ],
    ["tck-artifact-data", { data: { key: "value", count: 42 } }],
    ["tck-artifact-file", expect.objectContaining({ raw: expect.any(String), filename: "output.txt" })],
  ])("produces the artifact of %s", async (prefix, part) => {
    const { events } = await runToEnd(agent, { messageId: `${prefix}-1a2b3c4d` });
    expect(events.flatMap((event) => ("artifact" in event ? event.artifact.parts : []))).toEqual([part]);
  });

  it("answers with a message and no task", async () => {
    const { events, answer } = await runToEnd(agent, { messageId: "tck-message-response-1" });
    expect(events).toEqual([]);
    expect(answer).toEqual({ parts: [{ text: "Direct message response" }] });
  });

  it("sends the second chunk as the last", async () => {
    const { events } = await runToEnd(agent, { messageId: "tck-stream-artifact-chunked-1" });
    const chunks = events.filter((event) => "artifact" in event);
    expect(chunks.map((event) => [event.append, event.lastChunk])).toEqual([
      [undefined, undefined],
      [true, true],
    ]);
  });

  it("goes on asking for input until a message names something else", async () => {
    const history = [said("tck-input-required-1")];
    expect(statesOf((await runToEnd(agent, { messageId: "any", history })).events)).toEqual(["INPUT_REQUIRED"]);
    const named = await runToEnd(agent, { messageId: "tck-complete-task-2", history });
    expect(statesOf(named.events)).toEqual(["COMPLETED"]);
  });

  it("ends a multi-turn task at the word done", async () => {
    const history = [said("a", "tck-multi-turn start")];
    expect(statesOf((await runToEnd(agent, { text: "more", history })).events)).toEqual(["INPUT_REQUIRED"]);
    expect(statesOf((await runToEnd(agent, { text: "done", history })).events)).toEqual(["COMPLETED"]);
  });

  it("completes after authentication", async () => {
    const history = [said("tck-auth-required-1")];
    expect(statesOf((await runToEnd(agent, { text: "logged in", history })).events)).toEqual(["COMPLETED"]);
  });

  it.each(["tck-cancel", "tck-long-running"])("stops %s when the turn is aborted", async (prefix) => {
    const controller = new AbortController();
    const patient = createTckAgent({ streamingTimeoutMs: 3_600_000 });
    const run = patient.run(turnOf({ messageId: prefix, signal: controller.signal }));
    await run.next();
    const end = run.next();
    controller.abort();
    expect(await end).toEqual({ done: true, value: undefined });
  });

  it("declares the required extension and no streaming when asked", () => {
    const { profile } = createTckAgent({ requiredExtension: "urn:x:required", streaming: false });
    expect(profile.extensions).toMatchObject([{ uri: "urn:x:required", required: true }]);
    expect(profile.streaming).toBe(false);
  });
});
