import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as arbitrary from "../../../core/dialects/suite/arbitraries.ts";
import { nearMisses } from "../../../core/dialects/suite/arbitraries.ts";
import { toolsOf } from "../../../core/dialects/suite/join.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import type { Loss } from "../../../core/model/loss.ts";
import type { Message, Part } from "../../../core/model/message.ts";
import type { Task } from "../../../core/model/task.ts";
import { legalLog } from "../../../core/model/testing/events.ts";
import { cases } from "../../../core/model/testing/exploring.ts";
import { httpCalling } from "./call/call-http.ts";
import { decodeMessageParams } from "./decode-message.ts";
import { toResponse } from "./frames.ts";
import { HTTP_LOSSES as LOSSES } from "./losses.ts";
import { RENDER_MODES, Renderer, type RenderMode } from "./render/renderer.ts";

const TARGET = { url: "https://x.example", tenant: undefined, headers: {}, extensions: [] };
const DECLARED = new Set(Object.values(LOSSES).map(({ kind, reason }) => `${kind}: ${reason}`));
const expectDeclared = (losses: readonly Loss[]) => {
  for (const { kind, reason } of losses) expect(DECLARED).toContain(`${kind}: ${reason}`);
};

function heardBack(message: Message): { readonly losses: readonly Loss[]; readonly heard: Message } {
  const said = httpCalling.encode({ kind: "send", message }, TARGET);
  const { params } = JSON.parse(said.value.body as string);
  const { losses, value } = decodeMessageParams(params, {}, toolsOf().ids);
  return { losses: [...said.losses, ...losses], heard: value.message };
}

const name = fc.string({ minLength: 1, maxLength: 6 });
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.string().map((text) => ({ text })),
  fc.constantFrom<Part>(
    { data: {} },
    { data: { a: [1, { b: null }], kind: "text" } },
    { raw: "aGk=" },
    { raw: "AAEC/w==", filename: "f", mediaType: "image/png" },
    { url: "https://f.example/1", filename: "茶.pdf", mediaType: "application/pdf" },
  ),
);

describe("any message of a caller", () => {
  it("arrives as it was", () => {
    const sayable = fc.record({
      messageId: name,
      contextId: name,
      parts: fc.array(part, { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(sayable, (words) => {
        const message: Message = { role: "ROLE_USER", ...words };
        const { heard, losses } = heardBack(message);
        expect(losses).toEqual([]);
        expect(heard).toEqual(message);
      }),
      { numRuns: cases(5_000) },
    );
  });

  it("and cannot is declared", () => {
    fc.assert(
      fc.property(arbitrary.message, (any) => expectDeclared(heardBack({ ...any, role: "ROLE_USER" }).losses)),
      { numRuns: cases(3_000) },
    );
  });
});

function render(events: readonly StreamEvent[], mode: RenderMode, losses: Loss[] = []): string[] {
  let made = 0;
  const artifactId = () => `made-${++made}`;
  const report = (lost: readonly Loss[]) => losses.push(...lost);
  const renderer = new Renderer({ mode, language: "en", taskId: "s&1", artifactId, questionEnds: true, report });
  return events
    .flatMap((event) => renderer.push(event))
    .map(({ error, result }) => `data: ${toResponse("m", result, error)}\n\n`);
}

function taskIn(text: string): Task {
  const { value } = httpCalling.decode("send", { status: 200, contentType: "text/event-stream", text });
  if (!("task" in value)) throw new Error("A task was expected.");
  return value.task;
}

const END: StreamEvent = {
  statusUpdate: { taskId: "task", contextId: "context", status: { state: "TASK_STATE_COMPLETED" } },
};

describe("any answer of an agent", () => {
  it.each(RENDER_MODES)("is decoded as a task that ended, whatever was lost on the way: %s", (mode) => {
    fc.assert(
      fc.property(legalLog, (log) => {
        const losses: Loss[] = [];
        const text = render([...log.map(({ event }) => event), END], mode, losses).join("");
        expectDeclared(losses);
        const task = taskIn(text);
        expect([task.id, task.contextId]).toEqual(["s&1", "s"]);
        expect(task.status.state).toMatch(/COMPLETED|FAILED|CANCELED|INPUT_REQUIRED/);
      }),
      { numRuns: cases(1_500) },
    );
  });

  it("in text that grows is one text, however long", () => {
    const pieces = fc.array(fc.oneof(fc.string({ minLength: 1, maxLength: 4 }), fc.constant("x".repeat(3_000))), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(pieces, fc.constantFrom(...RENDER_MODES), (texts, mode) => {
        const chunks = texts.map((text, index): StreamEvent => {
          const artifact = { artifactId: "a", parts: [{ text }] };
          return { artifactUpdate: { taskId: "task", contextId: "context", artifact, append: index > 0 } };
        });
        const text = render([...chunks, END], mode).join("");
        const [artifact, ...others] = taskIn(text).artifacts ?? [];
        expect(others).toEqual([]);
        expect(artifact?.parts).toEqual([{ text: texts.join("") }]);
      }),
      { numRuns: cases(1_500) },
    );
  });
});

describe("whatever comes", () => {
  const near = nearMisses(
    [
      "jsonrpc",
      "id",
      "result",
      "error",
      "code",
      "message",
      "taskId",
      "kind",
      "final",
      "status",
      "state",
      "parts",
    ].concat([
      "artifact",
      "artifactId",
      "append",
      "lastChunk",
      "text",
      "reasoningText",
      "file",
      "data",
      "uri",
      "fileId",
    ]),
    ["2.0", 0, 99_921_111, "0", "text", "status-update", "artifact-update", "completed", "working", "canceled", true],
  );

  it("is understood or refused", () => {
    const kinds = fc.constantFrom("send", "cancel" as const);
    const types = fc.constantFrom("application/json", "text/event-stream");
    const statuses = fc.constantFrom(200, 204, 400, 401, 404, 500);
    fc.assert(
      fc.property(
        fc.array(near, { minLength: 1, maxLength: 3 }),
        kinds,
        types,
        statuses,
        (values, kind, type, status) => {
          const frames = values.map((value) => JSON.stringify(value));
          const text =
            type === "application/json" ? (frames[0] as string) : frames.map((data) => `data: ${data}\n\n`).join("");
          const decoder = httpCalling.openFrames?.();
          for (const run of [
            () => httpCalling.decode(kind, { status, contentType: type, text }),
            ...frames.map((data) => () => decoder?.decode({ data, event: "message", id: undefined })),
            () => httpCalling.decodeFrame({ data: frames[0] as string, event: "message", id: undefined }),
          ]) {
            try {
              run();
            } catch (error) {
              if (!ProtocolError.is(error)) throw error;
            }
          }
        },
      ),
      { numRuns: cases(10_000) },
    );
  });
});
