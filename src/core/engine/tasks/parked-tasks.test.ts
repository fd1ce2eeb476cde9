import { expect, test } from "vitest";
import { TaskFold } from "../../model/fold.ts";
import { ParkedTasks } from "./parked-tasks.ts";

const MIB = 1024 * 1024;

function foldOf(id: string): TaskFold {
  return TaskFold.from({ id, contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" } }, 1);
}

test("the oldest are forgotten when they take up too much", () => {
  const parked = new ParkedTasks();
  for (const id of ["a", "b", "c", "d"]) parked.put(foldOf(id), 20 * MIB);
  expect(["a", "b", "c", "d"].map((id) => parked.take(id, 1)?.id)).toEqual([undefined, "b", "c", "d"]);
  parked.put(foldOf("whole"), 65 * MIB);
  expect(parked.take("whole", 1)).toBeUndefined();
  parked.put(foldOf("after"), 1);
  expect(parked.take("after", 1)?.id).toBe("after");
});

test("one that has moved on since is not used", () => {
  const parked = new ParkedTasks();
  parked.put(foldOf("a"), 1);
  expect(parked.take("a", 2)).toBeUndefined();
  expect(parked.take("a", 1)).toBeUndefined();
});
