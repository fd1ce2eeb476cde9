import { createRetryBackoff, sleep } from "../../../core/client/call/retry.ts";
import { ConnectionError, toConnectionError } from "../../../core/client/errors.ts";
import { DEFAULT_STREAM_RETRY, DEFAULT_STREAM_SILENCE_MS } from "../../../core/client/options.ts";
import { isObject, type JsonObject } from "../../../core/model/json.ts";
import type { ExchangeAnswer } from "../../../core/wire/exchange.ts";
import { JsonParseError, parseJson } from "../../../core/wire/parse-json.ts";
import { readSseEvents, type SseEvent } from "../../../core/wire/sse.ts";
import { mayRepeat, type OpenAnswer, type RegistryRequests } from "./requests.ts";
import { RegistryError, type RegistryEvent } from "./types.ts";

interface WatchOptions {
  readonly after?: string;
  readonly signal?: AbortSignal;
}

const KINDS = [
  "registered",
  "updated",
  "stale",
  "removed",
  "reset",
] as const satisfies readonly RegistryEvent["kind"][];

/** The events of a registry over as many connections as it takes. Leaving the loop closes the connection. */
export async function* watchRegistry(
  requests: RegistryRequests,
  { after, signal }: WatchOptions,
): AsyncGenerator<RegistryEvent, void, undefined> {
  const newBackoff = () => createRetryBackoff(DEFAULT_STREAM_RETRY.attempts, DEFAULT_STREAM_RETRY);
  let backoff = newBackoff();
  let last = after;
  for (;;) {
    try {
      const headers = { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) };
      const opened = await requests.open({ method: "GET", path: "/watch", headers, signal });
      const onId = (id: string) => {
        backoff = newBackoff();
        last = id;
      };
      yield* readEvents(opened, onId);
    } catch (error) {
      if (!mayRepeat(error)) throw error;
      const wait = backoff.next();
      if (wait === undefined) throw error;
      await sleep(wait, signal).catch((cause: unknown) => {
        throw toConnectionError(cause, { method: "The wait to watch", url: "" });
      });
    }
  }
}

async function* readEvents(
  { answer, call }: OpenAnswer,
  onId: (id: string) => void,
): AsyncGenerator<RegistryEvent, void, undefined> {
  let isSilent = false;
  const chunks = watchSilence(answer, () => {
    isSilent = true;
  });
  try {
    for await (const events of readSseEvents(chunks, { onId })) {
      for (const event of events) {
        const read = readEvent(event);
        if (read !== undefined) yield read;
      }
    }
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    throw toConnectionError(error, call);
  } finally {
    answer.cancel();
  }
  const reason = isSilent ? `sent nothing for ${DEFAULT_STREAM_SILENCE_MS} ms` : "closed the stream";
  throw new ConnectionError("broken-stream", `${call.method} ${call.url} ${reason}.`);
}

/** The body of an answer, which is cancelled when nothing has come for too long, not even a comment. */
async function* watchSilence(
  answer: ExchangeAnswer,
  onSilence: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const silence = setTimeout(() => {
    onSilence();
    answer.cancel();
  }, DEFAULT_STREAM_SILENCE_MS);
  try {
    for await (const chunk of answer.chunks) {
      yield chunk;
      silence.refresh();
    }
  } finally {
    clearTimeout(silence);
  }
}

/** Undefined for kinds of events that are not known here. */
function readEvent({ data, event, lastEventId: number }: SseEvent): RegistryEvent | undefined {
  const kind = KINDS.find((known) => known === event);
  if (kind === undefined) return undefined;
  const read = parseData(data);
  const { id } = read;
  return { kind, number, data: read, ...(typeof id === "string" && { id }) };
}

function parseData(data: string): JsonObject {
  try {
    const value = parseJson(data);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonParseError)) throw error;
  }
  throw new RegistryError("INVALID_RESPONSE", "An event of the registry is not a JSON object.");
}
