import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { echo } from "../../../core/engine/testing/agents.ts";
import { settle } from "../../../core/engine/testing/fake-clock.ts";
import { cases } from "../../../core/model/testing/exploring.ts";
import { AGENT_ID, message, Stage } from "../runtime/link/testing/stage.ts";
import { decodePlatformFrame, type PlatformFrame } from "./link-frames.ts";

const LIMITS = { maxDepth: 64 };
const read = (frame: unknown): PlatformFrame =>
  decodePlatformFrame(typeof frame === "string" ? frame : JSON.stringify(frame), AGENT_ID, LIMITS);

/** A frame with some members missing, replaced, doubled in depth or of another kind. */
function mangled(frame: object): fc.Arbitrary<unknown> {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.constant("heartbeat"),
    fc.constant("message/stream"),
    fc.constant("__proto__"),
  );
  return fc
    .array(fc.tuple(fc.constantFrom(...pathsIn(frame)), fc.option(odd, { nil: undefined })), { maxLength: 4 })
    .map((changes) => changes.reduce<unknown>((value, [path, to]) => replaced(value, path, to), frame));
}

function pathsIn(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [[...path, key], ...pathsIn(inner, [...path, key])]);
}

function replaced(value: unknown, [key, ...rest]: readonly string[], to: unknown): unknown {
  if (key === undefined) return to;
  if (typeof value !== "object" || value === null) return value;
  const copy = { ...value } as Record<string, unknown>;
  copy[key] = replaced(copy[key], rest, to);
  return copy;
}

const wrap = (inner: unknown, msgType: unknown = "message") => ({
  msgType,
  agentId: AGENT_ID,
  sessionId: "app-1",
  taskId: "t",
  msgDetail: JSON.stringify(inner),
});

const FRAMES: readonly object[] = [
  message("hi", { taskId: "t", id: "r" }),
  wrap(message("hi", { taskId: "t", id: "r" })),
  { jsonrpc: "2.0", id: "c", method: "tasks/cancel", agentId: AGENT_ID, sessionId: "app-1", taskId: "t" },
  { jsonrpc: "2.0", id: "c", method: "clear_context", agentId: AGENT_ID, params: { sessionId: "session-1" } },
  { action: "clear", agentId: AGENT_ID, sessionId: "app-1", id: "c", timestamp: 1 },
  { msgType: "heartbeat", agentId: AGENT_ID },
];

describe("frames", () => {
  it("are read alike in every encoding", () => {
    const plain = message("hi", { taskId: "t", id: "r" });
    expect(read(wrap(plain))).toEqual(read(plain));
    expect(read({ ...wrap({}), msgDetail: plain })).toEqual(read(plain));
    const { agentId: _agentId, ...anonymous } = plain;
    expect(read(anonymous)).toEqual(read(plain));
    const cancel = { kind: "cancel", id: "c", target: { sessionIds: ["app-1"], taskIds: ["t", "c"] } };
    const frame = { id: "c", sessionId: "app-1", taskId: "t" };
    for (const method of ["tasks/cancel", "tasks_cancel"]) {
      expect(read({ ...frame, method })).toEqual(cancel);
      expect(read({ ...frame, action: method })).toEqual(cancel);
      expect(read(wrap({ ...frame, method }))).toEqual(cancel);
    }
  });

  it("name the task beside the message, too", () => {
    const { params, ...rest } = message("hi", { id: "r" }) as { params: { id: string } };
    const { id: _id, ...others } = params;
    expect(read(wrap({ ...rest, params: others }))).toMatchObject({ kind: "message", params: { id: "t" } });
  });

  it.each([
    ["not JSON", "{", "not-json"],
    ["no object", "[1]", "no-object"],
    ["nested too deep", `{"a":${"[".repeat(70)}${"]".repeat(70)}}`, "too-deep"],
    ["an envelope of something else", wrap("text"), "no-object"],
    ["an envelope that cannot be read", { ...wrap({}), msgDetail: "{" }, "not-json"],
    ["an envelope with a number", { ...wrap({}), msgDetail: 7 }, "no-object"],
    ["of another agent", { ...message("hi"), agentId: "somebody" }, "other-agent"],
    ["of another agent inside", wrap({ ...message("hi"), agentId: "somebody" }), "other-agent"],
    ["an error", { jsonrpc: "2.0", id: 1, error: { code: 5 } }, "error"],
    ["nothing", {}, "no-method"],
  ])("that are %s are disregarded", (_what, frame, why) => {
    expect(read(frame)).toEqual({ kind: "disregarded", why });
  });

  it("that are arbitrary never make it throw", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), ...FRAMES.map(mangled)), (frame) => {
        expect(typeof read(frame ?? "").kind).toBe("string");
      }),
      { numRuns: cases(2_000) },
    );
  });

  it("that are arbitrary leave the conversation as it was", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    let asked = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(fc.string(), ...FRAMES.map(mangled)), { maxLength: 20 }), async (frames) => {
        for (const frame of frames) platform.send(frame ?? "null");
        const taskId = `proper-${++asked}`;
        await platform.say(message("hello", { taskId, sessionId: `proper-session-${asked}` }));
        await settle(20);
        await stage.clock.advance(500);
        expect(platform.story(taskId)).toEqual(["working", "=()", "=hello", "completed final"]);
      }),
      { numRuns: 60 },
    );
    const reasons = stage.logged.map(({ fields }) => fields.why);
    expect(new Set(reasons).size).toBe(reasons.length);
  });
});
