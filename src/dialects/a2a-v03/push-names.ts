/**
 * The id of a push config that was given none. Before 0.2.5 a task had one config at most and setting it again replaced
 * it; the official servers keep to that by naming it after the task.
 */
export function unnamedConfig(taskId: string): string {
  return taskId;
}
