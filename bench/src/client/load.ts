import { setTimeout as pause } from "node:timers/promises";
import { chunkBytes } from "../contestants/protocol.ts";
import { Connection } from "./connection.ts";
import { type Endpoint, type HttpRequest, message, RequestTemplate, requestBytes, rpc } from "./requests.ts";
import { BodySink, StreamSink } from "./sinks.ts";

export interface LoadResult {
  completed: number;
  seconds: number;
  frames: number;
}

/** One request on a connection; returns the number of frames received. */
type Act = (connection: Connection) => Promise<number>;

/** Makes what a connection does. */
export type Acts = (endpoint: Endpoint, index: number) => Act;

interface LoadOptions {
  connections: number;
  count: number;
  /** Time over which the connections begin, so that they are out of step. */
  spreadMillis?: number;
  /** Is given the milliseconds that each request took. */
  latencies?: number[];
}

/** Makes a number of requests on connections that each have one in flight, and waits for the end of all. */
export async function runLoad(
  endpoint: Endpoint,
  { connections, count, latencies, spreadMillis = 0 }: LoadOptions,
  acts: Acts,
): Promise<LoadResult> {
  const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(endpoint.port)));
  const start = performance.now();
  let left = count;
  let frames = 0;
  try {
    await Promise.all(
      opened.map(async (connection, index) => {
        const act = acts(endpoint, index);
        if (spreadMillis > 0) await pause((spreadMillis * index) / connections);
        while (left-- > 0) {
          const sent = latencies === undefined ? 0 : performance.now();
          const received = await act(connection);
          latencies?.push(performance.now() - sent);
          frames += received;
        }
      }),
    );
    return { completed: count, frames, seconds: (performance.now() - start) / 1000 };
  } finally {
    for (const connection of opened) connection.close();
  }
}

/** Repeats a request with new ids; every answer must contain the mark. */
export function requests(request: HttpRequest | ((index: number) => HttpRequest), mark: string): Acts {
  return (endpoint, index) => {
    const template = new RequestTemplate(endpoint, typeof request === "function" ? request(index) : request);
    return exchanges(() => template.next(), mark);
  };
}

/** Blocking sends; every answer must be a completed task. */
export const sends = requests(message("hello"), "TASK_STATE_COMPLETED");

/** Sends prepared requests in turn; every answer must be a result. */
export function calls(prepared: readonly Buffer[]): Acts {
  return (_endpoint, index) => {
    let turn = index;
    return exchanges(() => prepared[turn++ % prepared.length]!, '"result"');
  };
}

function exchanges(next: () => Buffer, mark: string): Act {
  const sink = new BodySink();
  return async (connection) => {
    await connection.exchange(next(), sink);
    const body = sink.take();
    if (!body.includes(mark)) throw new Error(`unexpected answer: ${body.toString("utf8", 0, 500)}`);
    return 1;
  };
}

/** Streaming sends; every stream must carry all its text and end completed. */
export function streams(chunks: number, pauseMillis = 0): Acts {
  return (endpoint) => {
    const request = message(`${chunks} ${pauseMillis}`, { method: "SendStreamingMessage" });
    const template = new RequestTemplate(endpoint, request);
    return async (connection) => {
      const sink = new StreamSink(chunks * chunkBytes);
      const status = await connection.exchange(template.next(), sink);
      if (!sink.isWhole())
        throw new Error(`a stream broke: status ${status}, ${sink.text} bytes of text, ${sink.frames} frames`);
      return sink.frames;
    };
  };
}

/** One call of A2A 1.0 on a connection of its own, with its result parsed. */
export async function call<Result>(endpoint: Endpoint, method: string, params: unknown): Promise<Result> {
  const connection = await Connection.open(endpoint.port);
  const sink = new BodySink();
  await connection.exchange(requestBytes(endpoint, rpc(method, params)), sink);
  connection.close();
  const answer: { result?: Result; error?: unknown } = JSON.parse(sink.take().toString());
  if (answer.result === undefined) throw new Error(`${method} failed: ${JSON.stringify(answer.error)}`);
  return answer.result;
}

/** Sends messages that each start a task; returns the tasks as answered. */
export async function startTasks(endpoint: Endpoint, count: number, configuration: object = {}) {
  const tasks: { id: string; contextId: string }[] = [];
  for (let index = 0; index < count; index++) {
    const message = { messageId: `start-${index}`, role: "ROLE_USER", parts: [{ text: "hello" }] };
    const params = { message, configuration };
    tasks.push((await call<{ task: (typeof tasks)[number] }>(endpoint, "SendMessage", params)).task);
  }
  return tasks;
}
