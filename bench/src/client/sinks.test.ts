import { describe, expect, it } from "vitest";
import { MessageTemplate } from "./requests.ts";
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

describe("MessageTemplate", () => {
  it("counts its message ids up in place, with carry", () => {
    const template = new MessageTemplate({ port: 1, path: "/a" }, "SendMessage", "c1", { taskId: "t" });
    const seen = Array.from({ length: 101 }, () => {
      const [, body] = template.next().toString().split("\r\n\r\n");
      return JSON.parse(body!).params.message as { messageId: string; taskId: string };
    });
    expect(new Set(seen.map((message) => message.messageId)).size).toBe(101);
    expect(seen.at(-1)).toMatchObject({ messageId: "c1-000000000101", taskId: "t" });
  });
});
