import { type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import { fieldsOf } from "../../../../core/model/json.ts";
import { readSseEvents } from "../../../../core/wire/sse.ts";
import { DecodeError, parseObject } from "../json.ts";
import { decodeResponse, echoesId } from "../task/decode-response.ts";
import type { SimulatedTask } from "../task/simulated-task.ts";
import type { Report } from "../violations.ts";

interface StreamExpectations {
  /** Id of the request, repeated in every frame. */
  readonly id: string;
  readonly report: Report;
  readonly leaveAfter?: number;
}

/** Reads the response to a message into its task. Throws `DecodeError`, or the error of the broken connection. */
export async function receiveStream(
  answer: IncomingMessage,
  task: SimulatedTask,
  expected: StreamExpectations,
): Promise<void> {
  const { leaveAfter = Number.POSITIVE_INFINITY, report } = expected;
  if (answer.statusCode !== 200) {
    report("http-status", describeStatus(answer, await readText(answer)), task.id);
    task.end("broken");
    return;
  }
  if (contentTypeOf(answer) === "application/json") {
    receiveFrame(await readText(answer), task, expected);
    return;
  }
  if (contentTypeOf(answer) !== "text/event-stream")
    report("wrong-content-type", `It was ${contentTypeOf(answer)}.`, task.id);
  let frames = 0;
  let isOver = false;
  for await (const events of readSseEvents(answer)) {
    for (const { data } of events) {
      isOver = receiveFrame(data, task, expected) || isOver;
      if (++frames < leaveAfter) continue;
      answer.destroy();
      task.end("left");
      return;
    }
  }
  if (isOver || !task.isOpen) return;
  report("no-final", "", task.id);
  task.end("broken");
}

/** True if no further frame is required: the task has ended or asks the user a question. */
function receiveFrame(text: string, task: SimulatedTask, { id, report }: StreamExpectations): boolean {
  const value = parseObject(text);
  if (value === undefined) throw new DecodeError("A frame holds no JSON object.");
  const response = decodeResponse(value);
  if (!echoesId(response, id)) report("id-not-echoed", "", task.id);
  if (response.kind === "answer") throw new DecodeError("A frame has a result without a kind.");
  if (response.kind === "error") {
    task.fail(response.error);
    return true;
  }
  const { update } = response;
  if (update.taskId !== task.id) report("task-id-not-echoed", "", task.id);
  task.receive(update, response.error);
  return update.final || (update.kind === "status-update" && update.state === "input-required");
}

interface HttpCall {
  readonly url: URL;
  /** Sent unmodified: `fetch` would trim values, the platform does not. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Resolves once the response headers have arrived; the caller reads the body. */
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

/** Describes an error status, with the agent's own message wherever the body has it. */
export function describeStatus({ statusCode }: IncomingMessage, body: string): string {
  const { detail, error, message, title } = parseObject(body) ?? {};
  const reason = [fieldsOf(error).message, error, message, detail, title].find((value) => typeof value === "string");
  return reason === undefined || reason === "" ? `HTTP ${statusCode}.` : `HTTP ${statusCode}: ${reason}`;
}

export function contentTypeOf({ headers }: IncomingMessage): string {
  return (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
