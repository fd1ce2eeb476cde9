import { type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import { fieldsIn, parseFields } from "../json.ts";

export interface HttpCall {
  readonly url: URL;
  /** Sent as they are: `fetch` would trim values, and the platform does not. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Resolves with the head of the answer; its body is read from what is returned. */
export function post({ body, headers, url }: HttpCall): Promise<IncomingMessage> {
  const request = url.protocol === "https:" ? requestSecure : requestPlain;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
    });
    outgoing.once("response", resolve);
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

export async function readText(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** An answer that is none, with the agent's own words for it, wherever it has put them. */
export function describeStatus({ statusCode }: IncomingMessage, body: string): string {
  const { detail, error, message, title } = parseFields(body) ?? {};
  const words = [fieldsIn(error).message, error, message, detail, title].find((word) => typeof word === "string");
  return words === undefined || words === "" ? `HTTP ${statusCode}.` : `HTTP ${statusCode}: ${words}`;
}

export function contentTypeOf({ headers }: IncomingMessage): string {
  return (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
