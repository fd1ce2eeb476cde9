/** Ids of tasks as the platform makes them: that of the session, and what is the task's own. */
const BETWEEN = "&";

export function taskIdIn(sessionId: string, own: string): string {
  return `${sessionId}${BETWEEN}${own}`;
}

/** The session a task belongs to; an id of another form is all there is to go by. */
export function sessionOf(taskId: string): string {
  const at = taskId.lastIndexOf(BETWEEN);
  return at <= 0 ? taskId : taskId.slice(0, at);
}
