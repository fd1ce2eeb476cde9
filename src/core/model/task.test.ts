import { describe, expect, test } from "vitest";
import { isInterrupted, isTerminal, isTransitionAllowed, TASK_STATES, type TaskState } from "./task.ts";

describe("states", () => {
  test("are terminal, interrupted or active", () => {
    expect(TASK_STATES.filter(isTerminal)).toEqual([
      "TASK_STATE_COMPLETED",
      "TASK_STATE_FAILED",
      "TASK_STATE_CANCELED",
      "TASK_STATE_REJECTED",
    ]);
    expect(TASK_STATES.filter(isInterrupted)).toEqual(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"]);
    expect(TASK_STATES.filter((state) => !isTerminal(state) && !isInterrupted(state))).toEqual([
      "TASK_STATE_SUBMITTED",
      "TASK_STATE_WORKING",
    ]);
  });
});

describe("transitions", () => {
  const afterStart = TASK_STATES.filter((state) => state !== "TASK_STATE_SUBMITTED");
  const allowed: Partial<Record<TaskState, readonly TaskState[]>> = {
    TASK_STATE_SUBMITTED: TASK_STATES,
    TASK_STATE_WORKING: afterStart,
    TASK_STATE_INPUT_REQUIRED: afterStart,
    TASK_STATE_AUTH_REQUIRED: afterStart,
  };

  test.each(TASK_STATES)("from %s", (from) => {
    expect(TASK_STATES.filter((to) => isTransitionAllowed(from, to))).toEqual(allowed[from] ?? []);
  });
});
