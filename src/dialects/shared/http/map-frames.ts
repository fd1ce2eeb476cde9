/** A stream of frames in the form of a dialect. */
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { pipeFrames } from "../../../wire/pipe-frames.ts";

/**
 * What becomes of one frame goes into `into`: one frame, several or none. Their `json` is what will be written. True:
 * this was the last one, whatever the source has yet to give.
 */
type MapFrame = (frame: StreamFrame, into: StreamFrame[]) => boolean;

/** `atEnd` gives what is sent where the source ends before its last frame was. */
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

/** A frame whose JSON is that of the dialect. */
export function withJson({ event, number }: StreamFrame, json: string): StreamFrame {
  return number === undefined ? { event, json } : { number, event, json };
}
