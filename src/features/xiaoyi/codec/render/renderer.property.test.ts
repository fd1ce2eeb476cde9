/** Whatever a task does, a phone shows what it said. The screen here follows the reports of what phones do, not our code. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StreamEvent } from "../../../../core/model/event.ts";
import { legalLog } from "../../../../core/model/testing/events.ts";
import { cases } from "../../../../core/model/testing/exploring.ts";
import { enqueueFrames, type PartWire, type RenderedFrame } from "../frames.ts";
import { RENDER_MODES, Renderer, type RenderMode } from "./renderer.ts";

function render(events: readonly StreamEvent[], mode: RenderMode): RenderedFrame[] {
  let made = 0;
  const artifactId = () => `made-${++made}`;
  const renderer = new Renderer({ mode, language: "zh", taskId: "t", artifactId, report: () => {} });
  return [...renderer.begin(), ...events.flatMap((event) => renderer.push(event))];
}

/** Text that replaces replaces everything; text that appends to the last artifact replaces that chunk; else it is added. */
function screenOf(frames: readonly RenderedFrame[]): string {
  let chunks: { id: string; text: string }[] = [];
  for (const { result } of frames) {
    if (result.kind !== "artifact-update") continue;
    const texts = result.artifact.parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
    if (texts.length === 0) continue;
    const chunk = { id: result.artifact.artifactId, text: texts.join("") };
    if (!result.append) chunks = [];
    else if (chunks.at(-1)?.id === chunk.id) chunks.pop();
    chunks.push(chunk);
  }
  return chunks.map(({ text }) => text).join("");
}

const piece = fc.oneof(
  fc.string({ maxLength: 5 }),
  fc.constantFrom("茶", "😀", "\n", "x".repeat(3_000), "y".repeat(4_000), "长文".repeat(4_500)),
);
const chunk = fc
  .record({ artifactId: fc.constantFrom("x", "y", "z"), text: piece, append: fc.boolean() })
  .map(({ append, artifactId, text }): { id: string; text: string; append: boolean; event: StreamEvent } => ({
    id: artifactId,
    text,
    append,
    event: {
      artifactUpdate: { taskId: "m", contextId: "c", artifact: { artifactId, parts: [{ text }] }, append },
    },
  }));

function textOf(part: PartWire): string {
  if (part.kind === "text") return part.text;
  return part.kind === "reasoningText" ? part.reasoningText : "";
}

const END: StreamEvent = {
  statusUpdate: { taskId: "m", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } },
};

describe("any answer", () => {
  it("is shown as it was sent, all at once or in pieces", () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 12 }), (chunks) => {
        const said = new Map<string, string>();
        for (const { append, id, text } of chunks) {
          if (text !== "" || said.has(id)) said.set(id, append ? (said.get(id) ?? "") + text : text);
        }
        const expected = [...said.values()].filter((text) => text !== "").join("\n\n");
        const frames = render([...chunks.map(({ event }) => event), END], "phone");
        expect(screenOf(frames)).toBe(expected);
        const waiting: RenderedFrame[] = [];
        enqueueFrames(frames, waiting);
        expect(screenOf(waiting)).toBe(expected);
      }),
      { numRuns: cases(1_000) },
    );
  });
});

describe("any log", () => {
  it.each(RENDER_MODES)("ends once, begins with work and fills no frame too full: %s", (mode) => {
    fc.assert(
      fc.property(legalLog, (log) => {
        const frames = render(
          log.map(({ event }) => event),
          mode,
        );
        const finals = frames.filter(({ result }) => result.final);
        const last = log.at(-1)?.state;
        const ended = last?.match(/COMPLETED|FAILED|CANCELED|REJECTED/) != null;
        expect(finals).toHaveLength(ended ? 1 : 0);
        if (ended) expect(frames.at(-1)?.result.final).toBe(true);
        expect(frames[0]?.result).toMatchObject({ kind: "status-update", status: { state: "working" } });
        for (const { result } of frames) {
          expect(result.taskId).toBe("t");
          const parts = result.kind === "artifact-update" ? result.artifact.parts : result.status.message?.parts;
          expect([...(parts ?? []).map(textOf).join("")].length).toBeLessThanOrEqual(4_000);
        }
      }),
      { numRuns: cases(1_000) },
    );
  });
});
