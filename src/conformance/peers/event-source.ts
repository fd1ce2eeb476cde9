import { createSseParser } from "../../wire/sse.ts";
import { PeerFault } from "../outcome.ts";
import { FrameQueue } from "./frame-queue.ts";
import type { HttpAnswer, HttpClient } from "./http-client.ts";
import type { Frame, OpenStream } from "./peer.ts";

/** The events of an answer as frames. An event that cannot be read ends the stream for its reader with that fault. */
export function openEvents(
  client: HttpClient,
  answer: HttpAnswer,
  read: (data: string, event: string) => Frame,
): OpenStream {
  const { body, contentType, exchange } = answer;
  const frames = new FrameQueue<Frame>(client.timeoutMs, () => body.destroy());
  const parser = createSseParser(({ data, event }) => frames.push(read(data, event)));
  body.on("data", (chunk: Uint8Array) => {
    client.log.appendTo(exchange, Buffer.from(chunk).toString("utf8"));
    try {
      parser.push(chunk);
    } catch (error) {
      frames.end(error instanceof Error ? error : new PeerFault(String(error)));
      body.destroy();
    }
  });
  body.on("end", () => frames.end());
  body.on("error", (error) => frames.end(new PeerFault(`the stream broke: ${error.message}`)));
  body.on("close", () => frames.end());
  return { ok: "stream", frames, contentType };
}
