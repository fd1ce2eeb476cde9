import { describe, expect, it } from "vitest";
import { message, RequestTemplate, uniqueId } from "./requests.ts";
import { StreamSink } from "./sinks.ts";

function feed(expected: number, pieces: readonly string[]): StreamSink {
  const sink = new StreamSink(expected);
  for (const piece of pieces) sink.body(Buffer.from(piece), 0, Buffer.byteLength(piece));
  return sink;
}

describe("StreamSink", () => {
  it("counts text and frames across pieces and sees the end even when it is cut", () => {
    const sink = feed(5, ["data: ~~\n", "\ndata: ~~~\n\ndata: TASK_STATE_COM", "PLETED\n\n"]);
    expect([sink.text, sink.frames, sink.isWhole()]).toEqual([5, 3, true]);
  });

  it.each([
    ["text is missing", 6],
    ["there is too much text", 4],
  ])("is not whole when %s", (_, expected) => {
    expect(feed(expected, ["data: ~~~~~\n\ndata: TASK_STATE_COMPLETED\n\n"]).isWhole()).toBe(false);
  });

  it("is not whole without the final status", () => {
    expect(feed(2, ["data: ~~\n\n"]).isWhole()).toBe(false);
  });
});

describe("RequestTemplate", () => {
  const endpoint = { port: 1, path: "/a" };
  const idsOf = (template: RequestTemplate, count: number): string[] =>
    Array.from({ length: count }, () => {
      const [, body] = template.next().toString().split("\r\n\r\n");
      const { messageId, contextId } = JSON.parse(body!).params.message as Record<string, string>;
      expect(contextId).toBe(messageId);
      return messageId!;
    });

  it("counts its ids up in place, with carry, and shares none with another template", () => {
    const request = message("hello", { ids: { contextId: uniqueId } });
    const first = idsOf(new RequestTemplate(endpoint, request), 101);
    const second = idsOf(new RequestTemplate(endpoint, request), 101);
    expect(first.at(-1)).toMatch(/-000000000101$/);
    expect(new Set([...first, ...second]).size).toBe(202);
  });
});
