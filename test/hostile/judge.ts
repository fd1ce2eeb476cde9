/** Whether an answer makes sense: well formed, of the right kind, and never an admission that something broke. */
import type { IncomingHttpHeaders } from "node:http";
import { type HostileRequest, type Lane, RPC_ID } from "./hostile-request.ts";

export interface HostileReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Of a stream its first frame. */
  readonly body: string;
}

export type Verdict = "done" | "refused";

const INTERNAL = new Set([-32603, -32006]);
/** Errors in the envelope are JSON-RPC responses, so they have the status of one, except for a body that is too large. */
const ENVELOPE: ReadonlySet<unknown> = new Set([-32700, -32600, -32601, -32602]);
const TOO_LARGE = 413;
/** Before 1.0, what an agent does not do was said by 501; every other 5xx is a failure of the server. */
const NOT_IMPLEMENTED: ReadonlySet<unknown> = new Set([-32003, -32004, "unsupported-operation"]);
const RPC_LANES: ReadonlySet<Lane> = new Set(["JSON-RPC", "0.3 JSON-RPC", "0.1 JSON-RPC"]);
/** Another's host or origin is refused before anyone looks for a dialect. */
const OF_THE_SERVER = 403;

type Blame = (why: string) => Error;
type Plain = Readonly<Record<string, unknown>>;

export function judge(request: HostileRequest, reply: HostileReply): Verdict {
  const { status, headers, body } = reply;
  const { lane, raw } = request;
  const blame = (why: string) =>
    new Error(
      `${why}\nrequest: ${lane}: ${request.label} ${describe(request)}\nanswer: ${status} ${headers["content-type"]} ${body.slice(0, 2_000)}`,
    );
  if (status < 200 || (status >= 500 && status !== 501)) throw blame("A status that must not be.");
  if (raw.method === "HEAD") {
    if (body !== "") throw blame("HEAD with a body.");
    return status < 400 ? "done" : "refused";
  }
  if (status === 204 || status === 304) return "done";
  const type = headers["content-type"] ?? "";
  if (type === "text/event-stream") return judgeFrame(request, body, blame);
  if (type.startsWith("text/plain") && status === 200) return "done";
  const value = parsed(body, blame);
  if ("jsonrpc" in value) {
    const { code } = Object(value.error) as Plain;
    if (ENVELOPE.has(code) && status !== 200 && status !== TOO_LARGE) throw blame("Another status than 200.");
    return judgeRpc(request, value, blame);
  }
  if (RPC_LANES.has(lane) && status !== OF_THE_SERVER) throw blame("No JSON-RPC answer.");
  if (type !== mediaTypeOf(lane) && lane !== "server" && status !== OF_THE_SERVER) throw blame("Another media type.");
  if (status < 400) return "done";
  judgeHttpError(lane, status, value, blame);
  return "refused";
}

function parsed(text: string, blame: Blame): Plain {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw blame("Not JSON.");
  }
  if (typeof value !== "object" || value === null) throw blame("Not an object.");
  return value as Plain;
}

function mediaTypeOf(lane: Lane): string {
  return lane === "HTTP+JSON" ? "application/a2a+json" : "application/json";
}

/** A stream may end before its first frame, and begins with a comment where nothing happens for long. */
function judgeFrame(request: HostileRequest, body: string, blame: Blame): Verdict {
  if (body === "" || body.startsWith(": ")) return "done";
  const frame = /^(?:id: \d+\n)?data: (\{[^\n]*)(\n\n|$)/.exec(body);
  if (frame === null) throw blame("Not an event stream.");
  const [, data = "", end] = frame;
  if (end !== "\n\n" || !RPC_LANES.has(request.lane)) return "done";
  return judgeRpc(request, parsed(data, blame), blame);
}

function judgeRpc(request: HostileRequest, value: Plain, blame: Blame): Verdict {
  if (request.lane !== "server" && !RPC_LANES.has(request.lane)) throw blame("JSON-RPC where none was asked for.");
  const { jsonrpc, id, result, error, ...more } = value;
  if (jsonrpc !== "2.0" || Object.keys(more).length > 0) throw blame("No JSON-RPC envelope.");
  if (id !== null && typeof id !== "number" && typeof id !== "string") throw blame("No id.");
  if ((result === undefined) === (error === undefined)) throw blame("Neither result nor error, or both.");
  if (error === undefined) {
    if (id !== RPC_ID && RPC_LANES.has(request.lane)) throw blame("Another id.");
    return "done";
  }
  const { code, message, data } = error as Plain;
  if (!Number.isInteger(code) || INTERNAL.has(code as number)) throw blame("A code that must not be.");
  if (typeof message !== "string" || message === "") throw blame("No message.");
  if (!isDetails(data)) throw blame("No details.");
  return "refused";
}

function judgeHttpError(lane: Lane, status: number, value: Plain, blame: Blame): void {
  const own = (value.error ?? value) as Plain;
  if (status === 501 && !NOT_IMPLEMENTED.has(own.code)) throw blame("A status that must not be.");
  if (typeof own.message !== "string" || own.message === "") throw blame("No message.");
  // A bare path may lead to any dialect, and each has its own form of an error.
  const form = lane === "server" || status === OF_THE_SERVER ? formNamed(own) : formOf(lane);
  FORMS[form](value, status, lane, blame);
}

type Form = "status" | "number" | "word";

function formOf(lane: Lane): Form {
  if (lane === "0.3 HTTP+JSON") return "number";
  return lane === "tasks-rest" ? "word" : "status";
}

function formNamed({ code, status }: Plain): Form {
  if (typeof code === "string") return "word";
  return status === undefined ? "number" : "status";
}

const FORMS: Readonly<Record<Form, (value: Plain, status: number, lane: Lane, blame: Blame) => void>> = {
  /** `{"error": {code, status, message, details}}`, as in 1.0. */
  status(value, status, lane, blame) {
    const error = soleError(value, blame);
    if (error.code !== status) throw blame("The body tells another status.");
    if (typeof error.status !== "string" || !/^[A-Z_]+$/.test(error.status) || error.status === "INTERNAL") {
      throw blame("A status name that must not be.");
    }
    if (lane === "HTTP+JSON" && !isDetails(error.details)) throw blame("No details.");
  },
  /** `{code, message, data}`, as over HTTP in 0.3. */
  number({ code, message: _, data, ...more }, _status, _lane, blame) {
    if (Object.keys(more).length > 0) throw blame("Members that nobody knows.");
    if (!Number.isInteger(code) || INTERNAL.has(code as number)) throw blame("A code that must not be.");
    if (!isDetails(data)) throw blame("No details.");
  },
  /** `{"error": {code: "task-not-found", message, …}}` */
  word(value, _status, _lane, blame) {
    const { code } = soleError(value, blame);
    if (typeof code !== "string" || !/^[a-z-]+$/.test(code) || code.startsWith("internal")) {
      throw blame("A code that must not be.");
    }
  },
};

function soleError({ error, ...more }: Plain, blame: Blame): Plain {
  if (typeof error !== "object" || error === null || Object.keys(more).length > 0) throw blame("No error body.");
  return error as Plain;
}

function isDetails(details: unknown): boolean {
  if (!Array.isArray(details) || details.length === 0) return false;
  const [info] = details as Plain[];
  return details.every((detail) => typeof detail["@type"] === "string") && info?.domain === "a2a-protocol.org";
}

function describe({ raw }: HostileRequest): string {
  const body = raw.body === undefined ? "" : Buffer.from(raw.body).toString("utf8").slice(0, 2_000);
  return `${raw.method} ${raw.path ?? ""} ${JSON.stringify(raw.headers)} ${body}`;
}
