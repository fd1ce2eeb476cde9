/** Frames of one connection, in batches as they come off the network. */

import type { ExchangeCalling, FrameDecoder } from "../dialects/contract.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import type { Operation, StreamFrame } from "../model/operation.ts";
import type { ExchangeAnswer, ExchangeCall } from "../wire/exchange.ts";
import { type SseEvent, sseEvents } from "../wire/sse.ts";
import { ConnectionError } from "./errors.ts";
import { connectionError, withoutSecrets } from "./failures.ts";

export interface FrameReader {
  /** Ends when the peer closes; fails with `ProtocolError` for what it says and `ConnectionError` for a break. */
  readonly frames: AsyncGenerator<readonly StreamFrame[], void, undefined>;
  cancel(): void;
  /** Nothing of interest is to come: the peer has this long to close, then the stream ends as if it had. */
  closeWithin(milliseconds: number): void;
}

/** The same reader once something has come, it has ended or it has failed; its failure is told beside it. */
export async function begun(reader: FrameReader): Promise<{ readonly reader: FrameReader; readonly failure: unknown }> {
  let first: IteratorResult<readonly StreamFrame[], void> | undefined;
  let failure: unknown;
  try {
    first = await reader.frames.next();
  } catch (error) {
    failure = error;
  }
  async function* frames(): AsyncGenerator<readonly StreamFrame[], void, undefined> {
    if (failure !== undefined) throw failure;
    if (first === undefined || first.done === true) return;
    yield first.value;
    yield* reader.frames;
  }
  return {
    reader: { frames: frames(), cancel: () => reader.cancel(), closeWithin: (time) => reader.closeWithin(time) },
    failure,
  };
}

export interface FrameReaderOptions {
  readonly silenceMs: number;
  readonly report: (losses: readonly Loss[]) => void;
}

export function readFrames(
  answer: ExchangeAnswer,
  decoder: FrameDecoder,
  call: ExchangeCall,
  options: FrameReaderOptions,
): FrameReader {
  const { report, silenceMs } = options;
  let silent = false;
  let closing: NodeJS.Timeout | undefined;

  /** Every byte is a sign of life, comments too. Time in which nobody asks for more does not count. */
  async function* watchedChunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const chunks = answer.chunks[Symbol.asyncIterator]();
    const onSilence = (): void => {
      silent = true;
      answer.cancel();
    };
    for (;;) {
      const timer = setTimeout(onSilence, silenceMs);
      try {
        const { done, value } = await chunks.next();
        if (done === true) return;
        clearTimeout(timer);
        yield value;
      } finally {
        clearTimeout(timer);
      }
    }
  }

  async function* frames(): AsyncGenerator<readonly StreamFrame[], void, undefined> {
    try {
      for await (const events of sseEvents(watchedChunks())) {
        const { failure, read } = decodeAll(events, decoder, report);
        if (read.length > 0) yield read;
        if (failure !== undefined) throw failure;
      }
      const rest = silent ? [] : (decoder.end?.() ?? []);
      if (rest.length > 0) yield rest;
    } catch (error) {
      if (ProtocolError.is(error)) throw error;
      throw connectionError(error, call);
    } finally {
      clearTimeout(closing);
      answer.cancel();
    }
    if (silent) {
      throw new ConnectionError(
        "broken-stream",
        `${call.method} ${withoutSecrets(call.url)} sent nothing for ${silenceMs} ms, not even a comment; the connection counts as broken. Raise streamSilenceMs if the agent is known to be that quiet.`,
      );
    }
  }

  return {
    frames: frames(),
    cancel: () => answer.cancel(),
    closeWithin(milliseconds) {
      closing ??= setTimeout(() => answer.cancel(), milliseconds);
    },
  };
}

export function openDecoder(calling: ExchangeCalling, asked: Operation): FrameDecoder {
  return calling.openFrames?.(asked) ?? frameByFrame(calling);
}

function frameByFrame(calling: ExchangeCalling): FrameDecoder {
  return {
    decode(frame) {
      const { losses, value } = calling.decodeFrame(frame);
      return { losses, value: [value] };
    },
  };
}

/** What came before a frame that cannot be read is still good. */
function decodeAll(
  events: readonly SseEvent[],
  decoder: FrameDecoder,
  report: (losses: readonly Loss[]) => void,
): { readonly read: readonly StreamFrame[]; readonly failure: unknown } {
  const read: StreamFrame[] = [];
  for (const { data, event, lastEventId } of events) {
    if (data === "") continue;
    try {
      const { losses, value } = decoder.decode({ data, event, id: lastEventId === "" ? undefined : lastEventId });
      if (losses.length > 0) report(losses);
      read.push(...value);
    } catch (failure) {
      return { read, failure };
    }
  }
  return { read, failure: undefined };
}
