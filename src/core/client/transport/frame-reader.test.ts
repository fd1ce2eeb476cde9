import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ExchangeCalling } from "../../dialects/contract.ts";
import type { ExchangeAnswer } from "../../wire/exchange.ts";
import { findBinding } from "../dialects.ts";
import { restFrame, task } from "../testing/fake-agent.ts";
import { createFrameDecoder, readFrames } from "./transport.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const WORKING = { task: task("TASK_STATE_WORKING") };
const CALL = { method: "POST", url: "https://x.example/rest", headers: {} };

/** An answer whose bytes the test hands out one by one. */
function createAnswer() {
  let wake: (() => void) | undefined;
  let cancelled = false;
  let closed = false;
  const waiting: Uint8Array[] = [];
  async function* chunks() {
    for (;;) {
      const chunk = waiting.shift();
      if (chunk !== undefined) yield chunk;
      else if (cancelled || closed) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  }
  const answer: ExchangeAnswer = {
    status: 200,
    headers: new Headers(),
    text: () => Promise.reject(new Error("a stream")),
    chunks: chunks(),
    cancel() {
      cancelled = true;
      wake?.();
    },
  };
  return {
    answer,
    send(text: string) {
      waiting.push(Buffer.from(text));
      wake?.();
    },
    close() {
      closed = true;
      wake?.();
    },
    isCancelled: () => cancelled,
  };
}

const HTTP_JSON = findBinding("HTTP+JSON", "1.0")?.calling as ExchangeCalling;

function readerOf(answer: ExchangeAnswer, calling: ExchangeCalling = HTTP_JSON) {
  const decoder = createFrameDecoder(calling, { kind: "subscribe", id: "t1" });
  return readFrames(answer, decoder, CALL, { streamSilenceMs: 1_000, report() {} });
}

test("every byte is a sign of life, and silence is a break", async () => {
  const { answer, isCancelled, send } = createAnswer();
  const { frames } = readerOf(answer);
  const first = frames.next();
  for (let beat = 0; beat < 5; beat++) {
    await vi.advanceTimersByTimeAsync(900);
    send(": alive\n\n");
    await vi.advanceTimersByTimeAsync(0);
  }
  send(restFrame(WORKING, 1));
  expect((await first).value).toMatchObject([{ number: 1, event: WORKING }]);
  const second = expect(frames.next()).rejects.toMatchObject({
    code: "broken-stream",
    message: expect.stringContaining("sent nothing for 1000 ms"),
  });
  await vi.advanceTimersByTimeAsync(1_000);
  await second;
  expect(isCancelled()).toBe(true);
});

test("time in which the caller does not ask is not silence", async () => {
  const { answer, isCancelled, send } = createAnswer();
  const { frames } = readerOf(answer);
  send(restFrame(WORKING, 1));
  await frames.next();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(isCancelled()).toBe(false);
  send(restFrame(WORKING, 2));
  expect((await frames.next()).value).toMatchObject([{ number: 2 }]);
});

test("frames that begin with the separator of JSON text sequences are read", async () => {
  const { answer, send } = createAnswer();
  const { frames } = readerOf(answer);
  const plain = restFrame(WORKING, 1);
  send(`\u001e${plain}`);
  send(plain.replace("data: ", "data: \u001e").replace("id: 1", "id: 2"));
  expect((await frames.next()).value).toMatchObject([{ number: 1, event: WORKING }]);
  expect((await frames.next()).value).toMatchObject([{ number: 2, event: WORKING }]);
});

test("a peer that is not done closing in time is left, without an error", async () => {
  const { answer, send } = createAnswer();
  const reader = readerOf(answer);
  send(restFrame(WORKING, 1));
  await reader.frames.next();
  reader.closeWithin(500);
  const last = reader.frames.next();
  await vi.advanceTimersByTimeAsync(500);
  expect(await last).toEqual({ done: true, value: undefined });
});

test("what follows from the end is reported at the end, but not where the stream broke", async () => {
  const ending = { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } as const;
  const last = [{ event: { statusUpdate: ending }, json: "" }];
  const calling = { ...HTTP_JSON, openFrames: () => ({ decode: () => ({ losses: [], value: [] }), end: () => last }) };
  const ended = createAnswer();
  ended.answer.cancel();
  const { frames } = readerOf(ended.answer, calling);
  expect([await frames.next(), await frames.next()]).toMatchObject([{ value: last }, { done: true }]);
  const silent = expect(readerOf(createAnswer().answer, calling).frames.next()).rejects.toMatchObject({
    code: "broken-stream",
  });
  await vi.advanceTimersByTimeAsync(1_000);
  await silent;
});

/** A stream that was left after the last frame of interest. */
async function leaveEnded() {
  const peer = createAnswer();
  const reader = readerOf(peer.answer);
  peer.send(restFrame(WORKING, 1));
  await reader.frames.next();
  reader.closeWithin(500);
  await reader.frames.return?.();
  reader.cancel();
  expect(peer.isCancelled()).toBe(false);
  return peer;
}

test("a stream that is left after its last frame is received to its end, and no timer is left behind", async () => {
  const { close, send } = await leaveEnded();
  send(restFrame(WORKING, 2));
  close();
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
});

test("a peer that does not close in time, or does not stop sending, is cancelled", async () => {
  const slow = await leaveEnded();
  await vi.advanceTimersByTimeAsync(500);
  expect(slow.isCancelled()).toBe(true);
  const flooding = await leaveEnded();
  flooding.send(`: ${"x".repeat(70_000)}\n`);
  await vi.advanceTimersByTimeAsync(0);
  expect(flooding.isCancelled()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test("a stream that is left before its last frame is cancelled, and no timer is left behind", async () => {
  const { answer, isCancelled, send } = createAnswer();
  const reader = readerOf(answer);
  send(restFrame(WORKING, 1));
  await reader.frames.next();
  await reader.frames.return?.();
  expect(isCancelled()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
