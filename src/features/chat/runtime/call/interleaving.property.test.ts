import fc from "fast-check";
import { expect, it } from "vitest";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import type { StreamEvent } from "../../../../core/model/event.ts";
import { isTerminal, isTransitionAllowed, type TaskState } from "../../../../core/model/task.ts";
import { STATES, TERMINAL_STATES } from "../../a2a-lite/message.ts";
import { CALLER, eventsOf, HELPER, message, STRANGER, setUp } from "./testing/called-participant.ts";

type Step =
  | { readonly post: string; readonly by: "helper" | "stranger"; readonly how: "plain" | "reply" | "mention" | "edit" }
  | { readonly repeat: true }
  | { readonly pass: number };

const body = fc.constantFrom("", "\nText.", "\n[A2A:result task=x state=completed]", "\n[附件: a]");
const posts = fc.oneof(
  fc.tuple(fc.constantFrom(...STATES), body).map(([state, text]) => `[A2A:status task=ID state=${state}]${text}`),
  fc
    .tuple(fc.constantFrom(...TERMINAL_STATES), body)
    .map(([state, text]) => `[A2A:result task=ID state=${state}]${text}`),
  fc.constantFrom(
    "[A2A:ack task=ID]",
    "[A2A:status task=ID state=odd]",
    "[A2A:result task=ID]",
    "[A2A:cancel task=ID]",
  ),
  fc.constantFrom("Prose.", "[A2A:result task=ID", "[A2A:result task=t-other state=completed]", "[A2A:card]\nI write."),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      post: posts,
      by: fc.constantFrom("helper", "helper", "helper", "stranger"),
      how: fc.constantFrom("plain", "reply", "mention", "edit"),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ repeat: true as const }) },
  { weight: 2, arbitrary: fc.record({ pass: fc.constantFrom(0, 1_000, 5_000, 60_000, 700_000) }) },
);

function statesOf(events: readonly StreamEvent[]): TaskState[] {
  return events.flatMap((event) => {
    if ("task" in event) return event.task.status.state;
    return "statusUpdate" in event ? event.statusUpdate.status.state : [];
  });
}

it("whatever a peer and others post, a task ends at most once, by states that may follow each other", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { caller, clock, helper, network } = await setUp();
      const frames = await caller.dispatch(message("Write."), {});
      const asked = await helper.next();
      const id = /id=([\w-]+)/.exec(asked.text)?.[1] ?? "";
      const read = eventsOf(frames).catch(() => undefined);
      for (const one of steps) {
        const last = network.posts.findLast(({ by }) => by !== CALLER);
        if ("pass" in one) await clock.advance(one.pass);
        else if ("repeat" in one) {
          if (last !== undefined) network.repeat(last);
        } else {
          network.say(one.by === "helper" ? HELPER : STRANGER, one.post.replace("ID", id), {
            ...(one.how === "reply" && { replyTo: asked.id }),
            ...(one.how === "mention" && { mentions: [CALLER] }),
            ...(one.how === "edit" && last !== undefined && { edits: last.id }),
          });
        }
        await settle(2);
      }
      await clock.advance(1_300_000);
      const task = await caller.dispatch({ kind: "get", id }, {});
      const events = await Promise.race([read, settle(40).then(() => "stuck" as const)]);
      if (events === "stuck") throw new Error(`The stream does not end in ${task.status.state}.`);
      if (events === undefined) return void expect(task.status.state).toBe("TASK_STATE_FAILED");
      const states = statesOf(events);
      for (const [at, state] of states.entries()) {
        const before = states[at - 1];
        if (before !== undefined) expect(isTransitionAllowed(before, state)).toBe(true);
      }
      const terminal = events.findIndex(
        (event) => "statusUpdate" in event && isTerminal(event.statusUpdate.status.state),
      );
      if (terminal >= 0) expect(terminal).toBe(events.length - 1);
      expect(await caller.dispatch({ kind: "get", id }, {})).toEqual(task);
    }),
    { numRuns: 150 },
  );
});
