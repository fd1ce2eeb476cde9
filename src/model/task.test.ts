import { describe, expect, test } from "vitest";
import { isInterrupted, isTerminal, isTransitionAllowed, STATE_CLASS, TASK_STATES, TRANSITIONS } from "./task.ts";

describe("states", () => {
  test("every state has a class, and no other name has one", () => {
    expect(Object.keys(STATE_CLASS).sort()).toEqual([...TASK_STATES].sort());
    expect(TASK_STATES.filter(isTerminal)).toEqual([
      "TASK_STATE_COMPLETED",
      "TASK_STATE_FAILED",
      "TASK_STATE_CANCELED",
      "TASK_STATE_REJECTED",
    ]);
    expect(TASK_STATES.filter(isInterrupted)).toEqual(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"]);
  });
});

describe("transitions", () => {
  const pairs = TASK_STATES.flatMap((from) => TASK_STATES.map((to) => [from, to] as const));

  test("the table is total and names only states", () => {
    expect(Object.keys(TRANSITIONS).sort()).toEqual([...TASK_STATES].sort());
    for (const targets of Object.values(TRANSITIONS)) {
      expect(targets.every((state) => TASK_STATES.includes(state))).toBe(true);
      expect(new Set(targets).size).toBe(targets.length);
    }
  });

  test.each(pairs)("%s → %s", (from, to) => {
    const allowed = !isTerminal(from) && (to !== "TASK_STATE_SUBMITTED" || from === "TASK_STATE_SUBMITTED");
    expect(isTransitionAllowed(from, to)).toBe(allowed);
  });
});
