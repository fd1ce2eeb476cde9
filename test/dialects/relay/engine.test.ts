/** An agent that dials a relay: the serving side opens the line, the other side asks. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LinkCaller } from "../../../src/core/dialects/contract.ts";
import { allFrames, linkToolsOf, serveLink } from "../../../src/core/dialects/suite/join.ts";
import { textOf } from "../../../src/core/model/message.ts";
import type { Operation, SendOutcome, StreamFrame } from "../../../src/core/model/operation.ts";
import type { Task } from "../../../src/core/model/task.ts";
import type { Link } from "../../../src/core/wire/link.ts";
import { createLinkPair } from "../../../src/core/wire/testing/link-pair.ts";
import { createStage, type Stage } from "../stage.ts";
import { relay } from "./index.ts";

/** Where agents dial in. It asks whoever has called, over the line that was opened. */
class Relay {
  readonly callers: LinkCaller[] = [];

  dial(): Link {
    const [own, theirs] = createLinkPair();
    for (const calling of relay.calling) if (calling.carrier === "link") this.#answer(calling.open(linkToolsOf()), own);
    return theirs;
  }

  #answer(caller: LinkCaller, link: Link): void {
    void caller.attach(link);
    this.callers.push(caller);
  }

  ask<O extends Operation>(operation: O) {
    return (this.callers.at(-1) as LinkCaller).dispatch(operation, {});
  }
}

let stage: Stage;
let platform: Relay;
let line: Link;
let served: Promise<unknown> | undefined;

function dial(): void {
  line = platform.dial();
  served = serveLink(relay, stage.context, line);
}

beforeEach(async () => {
  stage = await createStage();
  platform = new Relay();
  dial();
});

afterEach(async () => {
  line.close();
  await served;
  await stage.close();
});

let sent = 0;
const say = (text: string, more: { taskId?: string; contextId?: string } = {}) => ({
  messageId: `m${++sent}`,
  role: "ROLE_USER" as const,
  parts: [{ text }],
  ...more,
});

function taskOf(outcome: SendOutcome): Task {
  if (!("task" in outcome)) throw new Error("The answer was a message.");
  return outcome.task;
}

const texts = (frames: readonly StreamFrame[]) =>
  frames.map(({ event }) => ("artifactUpdate" in event ? textOf(event.artifactUpdate.artifact.parts) : "")).join("");

describe("an agent that dialled", () => {
  test("is asked and answers, with a task or with a message", async () => {
    const task = taskOf(await platform.ask({ kind: "send", message: say("count") }));
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "count", parts: [{ text: "1 2 3 4 5 " }] }],
    });
    expect(await platform.ask({ kind: "get", id: task.id })).toEqual(task);
    expect(await platform.ask({ kind: "send", message: say("reply hello") })).toMatchObject({
      message: { role: "ROLE_AGENT", parts: [{ text: "hello" }] },
    });
  });

  test("pushes a stream as it comes, each event with its number", async () => {
    const frames = await allFrames(await platform.ask({ kind: "stream", message: say("count") }));
    expect(frames.map(({ number }) => number)).toEqual(frames.map((_, index) => index + 1));
    expect(texts(frames)).toBe("1 2 3 4 5 ");
    expect(frames.at(-1)?.event).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  test("asks back, and goes on with the answer", async () => {
    const asked = taskOf(await platform.ask({ kind: "send", message: say("ask") }));
    expect(asked.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Which colour?" }] },
    });
    const done = taskOf(await platform.ask({ kind: "send", message: say("red", { taskId: asked.id }) }));
    expect(done).toMatchObject({ id: asked.id, status: { state: "TASK_STATE_COMPLETED" } });
    expect(textOf(done.status.message?.parts ?? [])).toBe("2 messages before, now red");
  });

  test("is asked to stop", async () => {
    const stream = await platform.ask({ kind: "stream", message: say("wait") });
    const iterator = stream[Symbol.asyncIterator]();
    const first = await iterator.next();
    const event = first.done === true ? undefined : first.value[0]?.event;
    const id = event !== undefined && "task" in event ? event.task.id : "";
    expect(await platform.ask({ kind: "cancel", id })).toMatchObject({ status: { state: "TASK_STATE_CANCELED" } });
    const rest = await allFrames({ [Symbol.asyncIterator]: () => iterator });
    expect(rest.at(-1)?.event).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_CANCELED" } } });
    await expect(platform.ask({ kind: "cancel", id: "unknown" })).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  test("serves several sessions on one line at the same time", async () => {
    const sessions = ["a", "b", "c", "d"];
    const streams = await Promise.all(
      sessions.map((contextId) => platform.ask({ kind: "stream", message: say("count", { contextId }) })),
    );
    const views = await Promise.all(streams.map(allFrames));
    views.forEach((frames, index) => {
      expect(texts(frames)).toBe("1 2 3 4 5 ");
      expect(frames[0]?.event).toMatchObject({ task: { contextId: sessions[index] } });
    });
  });

  test("keeps its tasks when the line breaks; after dialling again they are followed by number", async () => {
    const begun = await platform.ask({
      kind: "send",
      message: say("wait"),
      configuration: { returnImmediately: true },
    });
    const { id } = taskOf(begun);
    const waiting = platform.ask({ kind: "subscribe", id }).then(allFrames);
    line.close();
    await expect(waiting).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await served;
    dial();
    const following = platform.ask({ kind: "subscribe", id, after: 1 }).then(allFrames);
    await platform.ask({ kind: "cancel", id });
    const frames = await following;
    expect(frames.map(({ number }) => number)).toEqual(frames.map((_, index) => index + 1));
    expect(frames.at(-1)?.event).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_CANCELED" } } });
  });
});
