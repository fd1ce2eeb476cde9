/** Converts a stream of frames to the form of a dialect. */
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { pipeFrames } from "../../../wire/pipe-frames.ts";

/**
 * Pushes zero or more converted frames to `into`; their `json` is what is sent. Returns true if this was the last
 * frame, even if the source has more.
 */
type MapFrame = (frame: StreamFrame, into: StreamFrame[]) => boolean;

/** `atEnd` returns the frames to send if the source ends without a last frame. */
export function mapFrames(source: FrameStream, map: MapFrame, atEnd?: () => readonly StreamFrame[]): FrameStream {
  const mapBatch = (batch: readonly StreamFrame[], end: () => void): readonly StreamFrame[] => {
    const mapped: StreamFrame[] = [];
    for (const frame of batch) {
      if (!map(frame, mapped)) continue;
      end();
      break;
    }
    return mapped;
  };
  return {
    [Symbol.asyncIterator]: () => pipeFrames(source[Symbol.asyncIterator](), { map: mapBatch, atEnd }),
  };
}

/** The frame with the dialect's JSON. */
export function withJson({ event, number }: StreamFrame, json: string): StreamFrame {
  return number === undefined ? { event, json } : { number, event, json };
}
