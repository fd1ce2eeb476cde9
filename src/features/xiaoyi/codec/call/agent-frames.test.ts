import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linkToolsOf } from "../../../../core/dialects/suite/join.ts";
import { promptly } from "../../../../core/engine/testing/fake-clock.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import { cases } from "../../../../core/model/testing/exploring.ts";
import { createLinkPair } from "../../../../core/wire/testing/link-pair.ts";
import { linkCalling } from "../../runtime/link/call/call-link.ts";
import { decodeAgentFrame } from "./agent-frames.ts";

const AGENT = "agent-1";
const TASK = "s&1";
const word = fc.constantFrom("agent_response", "heartbeat", "clawd_bot_init", "dance", AGENT, "agent-2", TASK, "s", "");
const value = fc.oneof(word, fc.jsonValue({ maxDepth: 2 }));
const part = fc.record({ kind: value, text: value, data: value, file: value }, { requiredKeys: [] });
const result = fc.record(
  {
    taskId: value,
    id: value,
    kind: fc.constantFrom("artifact-update", "status-update", "x"),
    append: fc.oneof(fc.boolean(), value),
    final: fc.constant(false),
    artifact: fc.oneof(value, fc.record({ artifactId: value, parts: fc.oneof(value, fc.array(part)) })),
    status: fc.oneof(value, fc.record({ state: fc.constantFrom("working", "unknown", "x"), message: value })),
  },
  { requiredKeys: [] },
);
const detail = fc.record({ id: value, result: fc.oneof(result, value), error: value }, { requiredKeys: [] });
const envelope = fc.record(
  {
    msgType: value,
    agentId: value,
    sessionId: value,
    taskId: value,
    msgDetail: fc.oneof(
      value,
      detail.map((one) => JSON.stringify(one)),
    ),
  },
  { requiredKeys: [] },
);
const frame = fc.oneof(
  fc.string(),
  envelope.map((one) => JSON.stringify(one)),
);

describe("any frame", () => {
  it("is read as something", () => {
    fc.assert(
      fc.property(frame, fc.option(fc.constant(AGENT), { nil: undefined }), (text, agentId) => {
        expect(["introduction", "heartbeat", "response", "disregarded"]).toContain(
          decodeAgentFrame(text, agentId).kind,
        );
      }),
      { numRuns: cases(2_000) },
    );
  });

  it("leaves the link fit for others, and a task that it is about alive or failed by a ProtocolError", async () => {
    const ask = (taskId: string, contextId: string) => ({
      kind: "send" as const,
      message: { messageId: "m", role: "ROLE_USER" as const, taskId, contextId, parts: [{ text: "Hello" }] },
    });
    const final = (taskId: string) => {
      const msgDetail = JSON.stringify({ id: "x", result: { taskId, final: true, status: { state: "completed" } } });
      return JSON.stringify({ msgType: "agent_response", agentId: AGENT, taskId, msgDetail });
    };
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 8 }), async (frames) => {
        const [near, far] = createLinkPair();
        const caller = linkCalling.open(linkToolsOf());
        void caller.attach(near);
        await far.send(JSON.stringify({ msgType: "clawd_bot_init", agentId: AGENT }));
        const about = caller.dispatch(ask(TASK, "s"), {}).catch((error: unknown) => error);
        const other = caller.dispatch(ask("other", "elsewhere"), {});
        for (const text of frames) await far.send(text);
        await far.send(final(TASK));
        await far.send(final("other"));
        expect(await promptly(other)).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
        const outcome = await promptly(about);
        if (!ProtocolError.is(outcome)) expect(outcome).toMatchObject({ task: { id: TASK } });
      }),
      { numRuns: cases(1_000) },
    );
  });
});
