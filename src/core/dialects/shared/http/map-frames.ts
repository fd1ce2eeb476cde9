/** Converts a stream of frames to the form of a dialect. */
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { pipeFrames } from "../../../wire/pipe-frames.ts";

/**
 * Pushes zero or more converted frames to `into`; their `json` is what is sent. Returns true if this was the last
 * frame, even if the source has more.
 */
type MapFrame = (frame: StreamFrame, into: StreamFrame[]) => boolean;

interface StreamEnd {
  /** The frames to send if the source ends without a last frame. */
  readonly atEnd?: () => readonly StreamFrame[];
  /** Called once, when no more frames are read. */
  readonly onClose?: () => void;
}

export function mapFrames(source: FrameStream, map: MapFrame, end: StreamEnd = {}): FrameStream {
  const mapBatch = (batch: readonly StreamFrame[], stop: () => void): readonly StreamFrame[] => {
    const mapped: StreamFrame[] = [];
    for (const frame of batch) {
      if (!map(frame, mapped)) continue;
      stop();
      break;
    }
    return mapped;
  };
  return {
    [Symbol.asyncIterator]: () => pipeFrames(source[Symbol.asyncIterator](), { map: mapBatch, ...end }),
  };
}

/** The frame with the dialect's JSON. */
export function withJson({ event, number }: StreamFrame, json: string): StreamFrame {
  return number === undefined ? { event, json } : { number, event, json };
}
