/** Whether an answer makes sense: well formed, of the right kind, and never an admission that something broke. */
import type { IncomingHttpHeaders } from "node:http";
import { type HostileRequest, RPC_ID } from "./hostile-request.ts";

export interface HostileReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Verdict = "done" | "refused";

const INTERNAL = new Set([-32603, -32006]);

export function judge(request: HostileRequest, reply: HostileReply): Verdict {
  const { status, headers, body } = reply;
  const blame = (why: string) =>
    new Error(
      `${why}\nrequest: ${request.label} ${describe(request)}\nanswer: ${status} ${headers["content-type"]} ${body.slice(0, 2_000)}`,
    );
  if (status >= 500 || status < 200) throw blame("A status that must not be.");
  if (request.raw.method === "HEAD") {
    if (body !== "") throw blame("HEAD with a body.");
    return status < 400 ? "done" : "refused";
  }
  if (status === 204 || status === 304) return "done";
  const type = headers["content-type"] ?? "";
  if (type === "text/event-stream") {
    if (!/^(?:id: \d+\n)?data: \{/.test(body) && !body.startsWith(": ") && body !== "")
      throw blame("Not an event stream.");
    return "done";
  }
  if (type.startsWith("text/plain") && status === 200) return "done";
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw blame("Not JSON.");
  }
  if (typeof value !== "object" || value === null) throw blame("Not an object.");
  if ("jsonrpc" in value) return judgeRpc(request, value as Record<string, unknown>, blame);
  if (request.lane === "JSON-RPC" && ![403, 413, 415].includes(status)) throw blame("No JSON-RPC answer.");
  if (request.lane === "HTTP+JSON" && type !== "application/a2a+json") throw blame("Another media type.");
  if (status < 400) return "done";
  judgeHttpError(request, status, value, blame);
  return "refused";
}

type Blame = (why: string) => Error;

function judgeRpc(request: HostileRequest, value: Record<string, unknown>, blame: Blame): Verdict {
  if (request.lane === "HTTP+JSON") throw blame("JSON-RPC where none was asked for.");
  const { jsonrpc, id, result, error, ...more } = value;
  if (jsonrpc !== "2.0" || Object.keys(more).length > 0) throw blame("No JSON-RPC envelope.");
  if (id !== null && typeof id !== "number" && typeof id !== "string") throw blame("No id.");
  if ((result === undefined) === (error === undefined)) throw blame("Neither result nor error, or both.");
  if (error === undefined) {
    if (id !== RPC_ID && request.lane === "JSON-RPC") throw blame("Another id.");
    return "done";
  }
  const { code, message, data } = error as Record<string, unknown>;
  if (!Number.isInteger(code) || INTERNAL.has(code as number)) throw blame("A code that must not be.");
  if (typeof message !== "string" || message === "") throw blame("No message.");
  if (!isDetails(data)) throw blame("No details.");
  return "refused";
}

function judgeHttpError(request: HostileRequest, status: number, value: object, blame: Blame): void {
  const { error, ...more } = value as { error?: Record<string, unknown> };
  if (error === undefined || Object.keys(more).length > 0) throw blame("No error body.");
  if (error.code !== status) throw blame("The body tells another status.");
  if (typeof error.status !== "string" || !/^[A-Z_]+$/.test(error.status) || error.status === "INTERNAL") {
    throw blame("A status name that must not be.");
  }
  if (typeof error.message !== "string" || error.message === "") throw blame("No message.");
  if (request.lane === "HTTP+JSON" && !isDetails(error.details)) throw blame("No details.");
}

function isDetails(details: unknown): boolean {
  if (!Array.isArray(details) || details.length === 0) return false;
  const [info] = details as Record<string, unknown>[];
  return details.every((detail) => typeof detail["@type"] === "string") && info?.domain === "a2a-protocol.org";
}

function describe({ raw }: HostileRequest): string {
  const body = raw.body === undefined ? "" : Buffer.from(raw.body).toString("utf8").slice(0, 2_000);
  return `${raw.method} ${raw.path ?? ""} ${JSON.stringify(raw.headers)} ${body}`;
}
