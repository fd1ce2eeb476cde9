import type { ServeContext } from "../../../src/core/dialects/contract.ts";
import { ProtocolError } from "../../../src/core/model/errors.ts";
import type { CallContext, FrameStream, Operation, StreamFrame } from "../../../src/core/model/operation.ts";
import { type Link, LinkError } from "../../../src/core/wire/link.ts";
import { servingEach } from "../each-link.ts";
import { eventOf, messageOf, taskOf } from "./encode.ts";
import { type Question, readQuestion } from "./schema.ts";

export const serving = servingEach(async (link, context) => {
  const streams = new Map<number, AsyncIterator<readonly StreamFrame[]>>();
  const under = new Set<Promise<void>>();
  for await (const text of link.messages) {
    const answering = answer(text, link, context, streams).finally(() => under.delete(answering));
    under.add(answering);
  }
  for (const stream of streams.values()) await stream.return?.();
  await Promise.all(under);
});

async function answer(
  text: string,
  link: Link,
  context: ServeContext,
  streams: Map<number, AsyncIterator<readonly StreamFrame[]>>,
): Promise<void> {
  let ask: number | undefined;
  try {
    const question = readQuestion(text);
    ask = question.ask;
    if (question.do === "hush") {
      await streams.get(ask)?.return?.();
      return;
    }
    await perform(question, link, context, streams);
  } catch (error) {
    if (error instanceof LinkError) return;
    await refuse(error, ask, link);
  }
}

async function refuse(error: unknown, ask: number | undefined, link: Link): Promise<void> {
  const known = ProtocolError.is(error) && error.code !== "INTERNAL_ERROR";
  const named = ProtocolError.is(error) ? error.metadata?.ask : undefined;
  const re = ask ?? (named === undefined ? undefined : Number(named));
  if (re === undefined) return;
  const said = known ? { code: error.code, text: error.message } : { code: "INTERNAL_ERROR", text: "Something broke." };
  try {
    await link.send(JSON.stringify({ re, error: said }));
  } catch (broken) {
    if (!(broken instanceof LinkError)) throw broken;
  }
}

async function perform(
  question: Exclude<Question, { do: "hush" }>,
  link: Link,
  { service, caller }: ServeContext,
  streams: Map<number, AsyncIterator<readonly StreamFrame[]>>,
): Promise<void> {
  const call: CallContext = { caller, tenant: "", extensions: [], dialect: "relay" };
  const { ask } = question;
  const reply = (content: object) => link.send(JSON.stringify({ re: ask, ...content }));
  const operation = operationOf(question);
  const outcome = await service.dispatch(operation, call);
  if (operation.kind === "stream" || operation.kind === "subscribe") {
    return pump(outcome as FrameStream, ask, reply, streams);
  }
  if ("message" in outcome) return reply({ message: messageOf(outcome.message) });
  await reply({ task: taskOf("task" in outcome ? outcome.task : (outcome as Parameters<typeof taskOf>[0])) });
}

function operationOf(
  question: Exclude<Question, { do: "hush" }>,
): Extract<Operation, { kind: "send" | "stream" | "get" | "cancel" | "subscribe" }> {
  switch (question.do) {
    case "say":
      return {
        kind: "send",
        message: question.message,
        ...(question.soon === true ? { configuration: { returnImmediately: true } } : undefined),
      };
    case "tell":
      return { kind: "stream", message: question.message };
    case "look":
      return { kind: "get", id: question.job };
    case "stop":
      return { kind: "cancel", id: question.job };
    case "watch": {
      const { job, after } = question;
      return { kind: "subscribe", id: job, ...(after === undefined ? undefined : { after }) };
    }
  }
}

async function pump(
  stream: FrameStream,
  ask: number,
  reply: (content: object) => void | Promise<void>,
  streams: Map<number, AsyncIterator<readonly StreamFrame[]>>,
): Promise<void> {
  const iterator = stream[Symbol.asyncIterator]();
  streams.set(ask, iterator);
  try {
    await reply({ begin: true });
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
      for (const { event, number } of step.value) await reply({ event: eventOf(event), at: number });
    }
    await reply({ end: true });
  } finally {
    streams.delete(ask);
    await iterator.return?.();
  }
}
