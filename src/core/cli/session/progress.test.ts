import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { captureOutput } from "../testing/run-in-process.ts";
import { createProgress } from "./progress.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const working = {
  task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } },
} as const;

describe("progress", () => {
  it("names what is waited for after five seconds, and the task once it is known", () => {
    const seen = captureOutput();
    const progress = createProgress(seen.output);
    progress.start({ agent: "Tea" });
    vi.advanceTimersByTime(4999);
    expect(seen.err).toBe("");
    vi.advanceTimersByTime(1);
    expect(seen.err).toBe("Waiting for Tea to answer.\n");
    progress.receive(working);
    progress.receive(working);
    progress.stop();
    vi.advanceTimersByTime(60_000);
    expect(seen.err).toBe(
      "Waiting for Tea to answer.\n" +
        "Waiting for Tea to finish task t in context c (working). Ctrl-C stops the waiting, not the task.\n",
    );
  });

  it("leaves it at the events where these are shown", () => {
    const seen = captureOutput();
    const progress = createProgress(seen.output);
    progress.start({ agent: "Tea", eventsAreShown: true });
    progress.receive(working);
    vi.advanceTimersByTime(60_000);
    progress.stop();
    expect(seen.err).toBe("");
  });

  it("counts the time in place at a terminal, and leaves nothing behind", () => {
    const seen = captureOutput({ isTTY: true, columns: 20, environment: { NO_COLOR: "1" } });
    const progress = createProgress(seen.output);
    progress.start({ agent: "Tea", eventsAreShown: true });
    progress.receive(working);
    vi.advanceTimersByTime(2000);
    seen.output.write("half a line");
    vi.advanceTimersByTime(1000);
    seen.output.write("\n");
    progress.retry("Connection refused: http://127.0.0.1:1");
    progress.stop();
    const lines = ["1s  working", "2s  working", "", "3s  working", "3s  Failed attempt…", ""];
    expect(seen.err).toBe(lines.map((line) => `\r\u001b[K${line}`).join(""));
  });

  it("replaces no line on a terminal that cannot", () => {
    const seen = captureOutput({ isTTY: true, environment: { TERM: "dumb" } });
    const progress = createProgress(seen.output);
    progress.start({ agent: "Tea", eventsAreShown: true });
    progress.retry("Connection refused.");
    progress.retry("Connection refused.");
    vi.advanceTimersByTime(3000);
    progress.receive(working);
    progress.stop();
    expect(seen.err).toBe("Connection refused.\nReached the agent again after 2 failed attempts.\n");
  });
});
