import { Connection } from "./connection.ts";
import { type Endpoint, type MessageOptions, MessageTemplate, rpcRequest } from "./requests.ts";
import { BodySink, StreamSink, saysCompleted } from "./sinks.ts";

/** When to stop: after a time (requests in flight are then awaited) or after a number of requests. */
export type Until = { seconds: number } | { requests: number };

export interface LoadResult {
  completed: number;
  seconds: number;
  frames: number;
}

/** One iteration on a connection; returns the number of frames received. */
type Act = (connection: Connection) => Promise<number>;

/** Runs an action on many connections concurrently, each in its own loop. */
export async function runLoad(
  endpoint: Endpoint,
  connections: number,
  until: Until,
  prepare: (index: number) => Act,
): Promise<LoadResult> {
  const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(endpoint.port)));
  const start = performance.now();
  const end = "seconds" in until ? start + until.seconds * 1000 : Infinity;
  let left = "requests" in until ? until.requests : Infinity;
  let completed = 0;
  let frames = 0;
  try {
    await Promise.all(
      opened.map(async (connection, index) => {
        const act = prepare(index);
        while (left-- > 0 && performance.now() < end) {
          const came = await act(connection);
          frames += came;
          completed++;
        }
      }),
    );
    return { completed, frames, seconds: (performance.now() - start) / 1000 };
  } finally {
    for (const connection of opened) connection.close();
  }
}

/** Blocking sends; every response must be a completed task. */
export function sends(endpoint: Endpoint, options?: MessageOptions): (index: number) => Act {
  return (index) => {
    const template = new MessageTemplate(endpoint, "SendMessage", `c${index}`, options);
    const sink = new BodySink();
    return async (connection) => {
      await connection.exchange(template.next(), sink);
      const body = sink.take();
      if (!saysCompleted(body)) throw new Error(`unexpected answer: ${body.toString().slice(0, 500)}`);
      return 1;
    };
  };
}

/** Streaming sends; every stream must carry all its text and end completed. */
export function streams(endpoint: Endpoint, chunks: number, chunkBytes: number): (index: number) => Act {
  return (index) => {
    const template = new MessageTemplate(endpoint, "SendStreamingMessage", `c${index}`, { text: String(chunks) });
    return async (connection) => {
      const sink = new StreamSink(chunks * chunkBytes);
      const status = await connection.exchange(template.next(), sink);
      if (!sink.isWhole())
        throw new Error(`a stream broke: status ${status}, ${sink.text} bytes of text, ${sink.frames} frames`);
      return sink.frames;
    };
  };
}

/** Repeats one JSON-RPC call, or several in turn. */
export function calls(requests: readonly Buffer[]): (index: number) => Act {
  return (index) => {
    let turn = index;
    const sink = new BodySink();
    return async (connection) => {
      await connection.exchange(requests[turn++ % requests.length]!, sink);
      const body = sink.take();
      if (!body.includes('"result"')) throw new Error(`unexpected answer: ${body.toString().slice(0, 500)}`);
      return 1;
    };
  };
}

/** One call on the given connection, with its result parsed. */
export async function call<Result>(
  connection: Connection,
  endpoint: Endpoint,
  method: string,
  params: unknown,
): Promise<Result> {
  const sink = new BodySink();
  await connection.exchange(rpcRequest(endpoint, method, params), sink);
  const answer: { result?: Result; error?: unknown } = JSON.parse(sink.take().toString());
  if (answer.result === undefined) throw new Error(`${method} failed: ${JSON.stringify(answer.error)}`);
  return answer.result;
}
