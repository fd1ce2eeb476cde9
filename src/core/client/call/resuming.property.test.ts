import fc from "fast-check";
import { expect, test } from "vitest";
import { connect } from "../../../client.ts";
import {
  artifactUpdate,
  collect,
  REPLAY_CARD,
  restFrame,
  startFakeAgent,
  statusUpdate,
  task,
} from "../testing/fake-agent.ts";

/** A log as the server keeps it: number n is at index n - 1. */
function logOf(length: number): object[] {
  const middle = Array.from({ length }, (_, at) => artifactUpdate(`chunk ${at} 漢字`));
  return [{ task: task("TASK_STATE_WORKING") }, ...middle, statusUpdate("TASK_STATE_COMPLETED")];
}

test("wherever and however often a numbered stream is cut, every number arrives once and in order", async () => {
  const scenario = fc.record({
    length: fc.integer({ min: 0, max: 30 }),
    /** How many bytes of each connection get through; what follows is cut off. */
    cuts: fc.array(fc.integer({ min: 0, max: 1500 }), { maxLength: 12 }),
    /** Whether the cut looks like a regular end. */
    clean: fc.boolean(),
    replay: fc.boolean(),
    chunk: fc.integer({ min: 1, max: 400 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ chunk, clean, cuts, length, replay }) => {
      const log = logOf(length);
      const pending = [...cuts];
      await using server = await startFakeAgent(
        async ({ headers, path }, response) => {
          const after = Number(headers["last-event-id"] ?? 0);
          const skipsSnapshot = headers["a2a-extensions"]?.includes("replay") ?? false;
          const snapshot = path.endsWith(":subscribe") && !skipsSnapshot;
          const frames = log.slice(after).map((event, at) => restFrame(event, after + at + 1));
          if (snapshot) frames.unshift(restFrame({ task: task("TASK_STATE_WORKING") }, Math.max(after, 1)));
          const whole = Buffer.from(frames.join(""));
          const cut = pending.shift();
          // Before the first event is out, a break would rightly be an error: nothing could be resumed.
          const least = path.endsWith(":stream") ? Buffer.byteLength(frames[0] ?? "") : 0;
          const bytes = cut === undefined ? whole : whole.subarray(0, Math.max(cut, least));
          response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
          for (let at = 0; at < bytes.length; at += chunk) response.write(bytes.subarray(at, at + chunk));
          if (cut === undefined || clean) response.end();
          else response.write("", () => setImmediate(() => response.destroy()));
        },
        { binding: "HTTP+JSON", ...(replay ? { card: REPLAY_CARD } : {}) },
      );
      const agent = await connect(server.url, { retry: { attempts: 20, baseMs: 0, capMs: 0 } });
      const events = await collect(agent.stream("go"));
      expect(events.map(({ number }) => number)).toEqual(log.map((_, at) => at + 1));
      expect(events.map(({ event }) => event)).toEqual(JSON.parse(JSON.stringify(log)));
    }),
    { numRuns: 60 },
  );
});
