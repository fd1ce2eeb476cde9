/** A local server that speaks the wire of OpenAI-compatible chat completions, one scripted answer per request. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface ReceivedRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: {
    readonly model: string;
    readonly stream: boolean;
    readonly messages: readonly {
      readonly role: string;
      readonly content: unknown;
      readonly tool_calls?: unknown;
      readonly tool_call_id?: string;
    }[];
    readonly tools?: readonly { readonly function: { readonly name: string; readonly description: string } }[];
    readonly [member: string]: unknown;
  };
}

export type ScriptedAnswer = (response: ServerResponse) => void | Promise<void>;

export interface ModelServer {
  readonly baseUrl: string;
  readonly requests: readonly ReceivedRequest[];
  /** Appends answers; a request without one gets status 500. */
  script(...answers: readonly ScriptedAnswer[]): void;
  /** Resolves when the client has closed the connection of an unfinished answer. */
  readonly left: Promise<void>;
  close(): Promise<void>;
}

export async function startModelServer(...answers: readonly ScriptedAnswer[]): Promise<ModelServer> {
  const script = [...answers];
  const requests: ReceivedRequest[] = [];
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const server = createServer(async (request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) leave();
    });
    const body = JSON.parse(await readBody(request));
    requests.push({ path: request.url ?? "", authorization: request.headers.authorization, body });
    const answer = script.shift() ?? fail(500, { error: { message: "nothing scripted" } });
    await answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    script: (...more) => {
      script.push(...more);
    },
    left,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}

type Json = Readonly<Record<string, unknown>>;
export type Frame = Json | string;

const CHUNK = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "test" } as const;

export function delta(fields: Json, finish: string | null = null): Json {
  return { ...CHUNK, choices: [{ index: 0, delta: fields, finish_reason: finish }] };
}

export const DONE = "[DONE]";

export function usage(prompt: number, completion: number, details: Json = {}): Json {
  const counts = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  return { ...CHUNK, choices: [], usage: { ...counts, ...details } };
}

/** An answer in tokens of three letters, with the frames that OpenAI sends around them. */
export function textFrames(text: string, finish = "stop"): readonly Frame[] {
  const tokens = text.match(/[\s\S]{1,3}/g) ?? [];
  return [
    delta({ role: "assistant", content: "" }),
    ...tokens.map((content) => delta({ content })),
    delta({}, finish),
    usage(10, tokens.length),
    DONE,
  ];
}

interface ScriptedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Json;
}

/** Calls whose arguments come in pieces. */
function callFrames(...calls: readonly ScriptedCall[]): readonly Frame[] {
  const frames = calls.flatMap(({ arguments: given, id, name }, index) => [
    delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
    ...(JSON.stringify(given).match(/[\s\S]{1,5}/g) ?? []).map((piece) =>
      delta({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ]);
  return [...frames, delta({}, "tool_calls"), usage(20, 5), DONE];
}

export function encodeFrames(frames: readonly Frame[]): Buffer {
  return Buffer.from(
    frames.map((frame) => `data: ${typeof frame === "string" ? frame : JSON.stringify(frame)}\n\n`).join(""),
  );
}

/** The frames, split after the given bytes into pieces that arrive one after another. */
export function stream(frames: readonly Frame[], cuts: readonly number[] = []): ScriptedAnswer {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const bytes = encodeFrames(frames);
    const ends = [...cuts.filter((cut) => cut < bytes.length), bytes.length];
    let start = 0;
    for (const end of ends) {
      await write(response, bytes.subarray(start, end));
      start = end;
    }
    response.end();
  };
}

/** Each piece is flushed before the next is written. */
async function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve) => response.write(bytes, () => resolve()));
  await new Promise((resolve) => setImmediate(resolve));
}

export const say = (text: string): ScriptedAnswer => stream(textFrames(text));

export const call = (...calls: readonly ScriptedCall[]): ScriptedAnswer => stream(callFrames(...calls));

export function fail(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): ScriptedAnswer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** Breaks the connection after the frames. */
export function cut(frames: readonly Frame[]): ScriptedAnswer {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    await write(response, encodeFrames(frames));
    response.socket?.resetAndDestroy();
  };
}

/** Sends the frames and then nothing more, or the last of them again and again. */
export function hang(frames: readonly Frame[], repeats = false): ScriptedAnswer {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    await write(response, encodeFrames(frames));
    const last = encodeFrames(frames.slice(-1));
    while (repeats && !response.destroyed) await write(response, last);
  };
}
