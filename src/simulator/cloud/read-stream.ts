import type { IncomingMessage } from "node:http";
import { readSseEvents } from "../../wire/sse.ts";
import { parseFields } from "../json.ts";
import { Misread } from "../task/misread.ts";
import { isEchoed, readResponse } from "../task/read-response.ts";
import type { SimulatedTask } from "../task/simulated-task.ts";
import type { Report } from "../violations.ts";
import { contentTypeOf, describeStatus, readText } from "./http-call.ts";

interface StreamExpectations {
  /** Of the request, which every frame repeats. */
  readonly id: string;
  readonly report: Report;
  /** Go away after so many frames. */
  readonly leaveAfter?: number;
}

/** Reads the answer to a message into its task. Throws `Misread`, or what the connection broke with. */
export async function readStream(
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
    takeFrame(await readText(answer), task, expected);
    return;
  }
  if (contentTypeOf(answer) !== "text/event-stream")
    report("wrong-content-type", `It was ${contentTypeOf(answer)}.`, task.id);
  let frames = 0;
  let isOver = false;
  for await (const events of readSseEvents(answer)) {
    for (const { data } of events) {
      isOver = takeFrame(data, task, expected) || isOver;
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

/** True if nothing needs to follow: the end, or a question. */
function takeFrame(text: string, task: SimulatedTask, { id, report }: StreamExpectations): boolean {
  const value = parseFields(text);
  if (value === undefined) throw new Misread("A frame holds no JSON object.");
  const response = readResponse(value);
  if (!isEchoed(response, id)) report("id-not-echoed", "", task.id);
  if (response.kind === "answer") throw new Misread("A frame has a result without a kind.");
  if (response.kind === "error") {
    task.fail(response.error);
    return true;
  }
  const { update } = response;
  if (update.taskId !== task.id) report("task-id-not-echoed", "", task.id);
  task.take(update, response.error);
  return update.final || (update.kind === "status-update" && update.state === "input-required");
}
