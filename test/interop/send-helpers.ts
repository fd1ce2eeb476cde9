import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { StreamEvent } from "../../src/core/model/event.ts";
import { type Message, textOf } from "../../src/core/model/message.ts";
import type { SendOutcome } from "../../src/core/model/operation.ts";
import { isTerminal, type Task, type TaskState, type TaskStatus } from "../../src/core/model/task.ts";
import type { Driver, Sending } from "./driver.ts";

/** Words that scenarios share. */

export function says(text: string, more: Partial<Message> = {}): Sending {
  return { message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more } };
}

/** The same, without waiting for the agent. */
export function saysAtOnce(text: string, more: Partial<Message> = {}): Sending {
  return { ...says(text, more), configuration: { returnImmediately: true } };
}

function taskOf(outcome: SendOutcome): Task {
  if (!("task" in outcome)) expect.fail("The agent answered with a message, not with a task.");
  return outcome.task;
}

export async function sendTask(driver: Driver, sending: Sending): Promise<Task> {
  return taskOf(await driver.send(sending));
}

export async function endedTask(driver: Driver): Promise<Task> {
  const task = await sendTask(driver, says("echo over"));
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  return task;
}

/** Asks again until the task has ended: each answer takes a turn of the peer, so nothing has to be slept. */
export async function untilEnded(driver: Driver, id: string): Promise<Task> {
  for (;;) {
    const task = await driver.get(id);
    if (isTerminal(task.status.state)) return task;
  }
}

export async function collect(stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Reads on with an iterator that other code has begun. */
export async function rest(iterator: AsyncIterator<StreamEvent>): Promise<StreamEvent[]> {
  return collect({ [Symbol.asyncIterator]: () => iterator });
}

export async function next(iterator: AsyncIterator<StreamEvent>): Promise<StreamEvent> {
  const step = await iterator.next();
  if (step.done === true) expect.fail("The stream ended early.");
  return step.value;
}

/** Reads until an event says so; what came before it is not looked at. */
export async function until(
  iterator: AsyncIterator<StreamEvent>,
  wanted: (event: StreamEvent) => boolean,
): Promise<StreamEvent> {
  for (;;) {
    const event = await next(iterator);
    if (wanted(event)) return event;
  }
}

export function isState(state: TaskState): (event: StreamEvent) => boolean {
  return (event) => statusOf(event)?.state === state;
}

export function statusOf(event: StreamEvent): TaskStatus | undefined {
  if ("task" in event) return event.task.status;
  return "statusUpdate" in event ? event.statusUpdate.status : undefined;
}

export function taskIdOf(event: StreamEvent): string {
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  if ("artifactUpdate" in event) return event.artifactUpdate.taskId;
  return expect.fail("A message names no task.");
}

export function saidWith(status: TaskStatus): string {
  return textOf(status.message?.parts ?? []);
}

export function artifactText(task: Task, artifactId: string): string {
  const artifact = task.artifacts?.find((one) => one.artifactId === artifactId);
  if (artifact === undefined) expect.fail(`The task has no artifact "${artifactId}".`);
  return artifact.parts.map((part) => ("text" in part ? part.text : "")).join("");
}

/** The type of the error a call is refused with. */
export async function refusal(driver: Driver, call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
  } catch (error) {
    return driver.codeOf(error);
  }
  return "nothing was refused";
}
