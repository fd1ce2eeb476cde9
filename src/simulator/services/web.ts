import type { IncomingMessage, ServerResponse } from "node:http";

/** Answers a request if it is its own. */
export type Route = (request: IncomingMessage, url: URL, response: ServerResponse) => Promise<boolean>;

const MOST_BYTES = 64 * 1024 * 1024;

/** Undefined if there is too much of it. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function replyJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
